//! The order in which a worker reads or writes the blocks of a file.

use nilometer_model::{Bytes, RandomStream, Seed};

use super::Permutation;

/// A number of blocks of one size, and the offset of each.
#[derive(Debug, Clone)]
pub struct Order {
    block: u32,
    /// The size of the last block in bytes.
    last: u32,
    count: u64,
    course: Course,
}

#[derive(Debug, Clone)]
enum Course {
    /// Blocks at even distances.
    Even { first: u64, step: u64 },
    /// Blocks drawn independently of each other.
    Uniform { blocks: u64, stream: RandomStream },
    /// No block twice until all were drawn.
    Full(Full),
}

impl Order {
    /// A whole file from its first block to its last. The last may be shorter.
    pub fn sequential(size: Bytes, block: Bytes) -> Self {
        let step = block.0;
        let count = size.0.div_ceil(step);
        let rest = size.0 % step;
        let last = if rest == 0 { step } else { rest };
        Order { last: last as u32, ..Order::whole(block, count, Course::Even { first: 0, step }) }
    }

    /// One worker's part of a shared file, in one piece. The `size` of each part is a whole number of blocks.
    pub fn segmented(size: Bytes, block: Bytes, worker: u32) -> Self {
        let course = Course::Even { first: size.0 * u64::from(worker), step: block.0 };
        Order::whole(block, size.0 / block.0, course)
    }

    /// One worker's blocks of a shared file, in which the blocks of all workers take turns. `size` as above.
    pub fn strided(size: Bytes, block: Bytes, worker: u32, workers: u32) -> Self {
        let [first, step] = [worker, workers].map(|count| block.0 * u64::from(count));
        Order::whole(block, size.0 / block.0, Course::Even { first, step })
    }

    /// Blocks of a file, drawn independently of each other.
    pub fn uniform(size: Bytes, block: Bytes, operations: u64, stream: RandomStream) -> Self {
        Order::whole(block, operations, Course::Uniform { blocks: size.0 / block.0, stream })
    }

    /// Blocks of a file in random order, none twice until all were; then again, in another order.
    pub fn full(size: Bytes, block: Bytes, operations: u64, seed: Seed) -> Self {
        Order::whole(block, operations, Course::Full(Full::new(size.0 / block.0, seed)))
    }

    fn whole(block: Bytes, count: u64, course: Course) -> Self {
        let block = block.0 as u32;
        Order { block, last: block, count, course }
    }

    /// The number of blocks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True if blocks are drawn, and not counted off.
    pub fn is_random(&self) -> bool {
        !matches!(self.course, Course::Even { .. })
    }

    /// The size of a block in bytes; the last may be shorter.
    pub(super) fn block(&self) -> u64 {
        u64::from(self.block)
    }

    /// The size of all blocks in bytes.
    pub fn bytes(&self) -> u64 {
        self.count * u64::from(self.block) - u64::from(self.block - self.last)
    }

    /// The size of the block of this number in bytes.
    #[inline]
    pub(super) fn length(&self, number: u64) -> u32 {
        if number + 1 == self.count { self.last } else { self.block }
    }

    /// The offset of the block of this number. If the order is random, ask for the numbers in turn.
    #[inline]
    pub(super) fn offset(&mut self, number: u64) -> u64 {
        match &mut self.course {
            Course::Even { first, step } => *first + number * *step,
            Course::Uniform { blocks, stream } => stream.below(*blocks) * u64::from(self.block),
            Course::Full(full) => full.next() * u64::from(self.block),
        }
    }
}

/// The state of an order that draws all blocks of a file, then all again.
#[derive(Debug, Clone)]
struct Full {
    blocks: u64,
    seed: Seed,
    permutation: Permutation,
    round: u64,
    taken: u64,
}

impl Full {
    fn new(blocks: u64, seed: Seed) -> Self {
        Full { blocks, seed, permutation: Permutation::new(blocks, seed.part(0)), round: 0, taken: 0 }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.taken == self.blocks {
            self.round += 1;
            self.taken = 0;
            self.permutation = Permutation::new(self.blocks, self.seed.part(self.round));
        }
        self.taken += 1;
        self.permutation.at(self.taken - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(mut order: Order) -> Vec<u64> {
        (0..order.count()).map(|number| order.offset(number)).collect()
    }

    #[test]
    fn a_file_ends_with_what_is_left() {
        let order = Order::sequential(Bytes(2500), Bytes(1000));
        assert_eq!((order.count(), order.length(1), order.length(2), order.bytes()), (3, 1000, 500, 2500));
        assert_eq!(offsets(order), [0, 1000, 2000]);
        assert_eq!(Order::sequential(Bytes(3000), Bytes(1000)).length(2), 1000);
    }

    #[test]
    fn workers_share_a_file_as_ior_defines_it() {
        let (size, block) = (Bytes(30), Bytes(10));
        assert_eq!(offsets(Order::segmented(size, block, 2)), [60, 70, 80]);
        assert_eq!(offsets(Order::strided(size, block, 2, 4)), [20, 60, 100]);
        for workers in [1, 2, 5] {
            for segmented in [true, false] {
                let order = |worker| {
                    if segmented {
                        Order::segmented(size, block, worker)
                    } else {
                        Order::strided(size, block, worker, workers)
                    }
                };
                let mut all: Vec<u64> = (0..workers).flat_map(|worker| offsets(order(worker))).collect();
                all.sort_unstable();
                let blocks = u64::from(workers) * 3;
                assert!(all.iter().copied().eq((0..blocks).map(|at| at * 10)), "{workers}: {all:?}");
            }
        }
    }

    #[test]
    fn full_coverage_begins_again_in_another_order() {
        let all = offsets(Order::full(Bytes(1000 * 64), Bytes(64), 2500, Seed(9)));
        let (first, rest) = all.split_at(1000);
        let (second, third) = rest.split_at(1000);
        assert_ne!(first, second);
        for round in [first, second] {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq((0..1000).map(|at| at * 64)), "a block is missing");
        }
        let mut sorted = third.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 500, "no block twice in what is left");
    }
}
