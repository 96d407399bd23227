//! Exact shares of counts and sums, in whole numbers. The same numbers give the same shares on every machine: no
//! rounding of a floating-point unit has a part in them.

/// The number of `items` below `below` of `all`, if item j stands at the quantile (j + 1/2) / `items`.
///
/// With 4 items and 2 of 10 below, the items stand at 1/8, 3/8, 5/8 and 7/8. One of them is below 2/10.
pub(super) fn items_below(below: u64, all: u64, items: u64) -> u64 {
    let [below, all, items] = [below, all, items].map(u128::from);
    if all == 0 {
        return 0;
    }
    ((2 * items * below + all - 1) / (2 * all)) as u64
}

/// Shares `items` among classes of these sizes, by the quantiles of the items.
pub(super) fn by_quantiles(classes: &[u64], items: u64) -> Vec<u64> {
    let all = classes.iter().sum();
    let mut below = 0;
    let mut given = 0;
    let mut shares = Vec::with_capacity(classes.len());
    for class in classes {
        below += class;
        let end = items_below(below, all, items);
        shares.push(end - given);
        given = end;
    }
    shares
}

/// `part` times `numerator` by `denominator`, rounded; the greatest number if it is more. The product of the first
/// two is below 2^127.
pub(super) fn rounded(part: u64, numerator: u64, denominator: u64) -> u64 {
    let [part, numerator, denominator] = [part, numerator, denominator.max(1)].map(u128::from);
    u64::try_from((2 * part * numerator + denominator) / (2 * denominator)).unwrap_or(u64::MAX)
}

/// A share with its weight and its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BoundedShare {
    /// The share grows with it.
    pub(super) weight: u128,
    /// The least share.
    pub(super) least: u64,
    /// The greatest share.
    pub(super) most: u64,
}

/// Shares `total` by weights. No share is outside its bounds, unless the total is outside their sums.
pub(super) fn within_bounds(total: u64, parts: &[BoundedShare]) -> Vec<u64> {
    let weights = parts.iter().map(|part| part.weight).sum::<u128>().max(1);
    let mut least_left: u128 = parts.iter().map(|part| u128::from(part.least)).sum();
    let mut most_left: u128 = parts.iter().map(|part| u128::from(part.most)).sum();
    let mut weight_so_far = 0;
    let mut given = 0;
    let mut shares = Vec::with_capacity(parts.len());
    for part in parts {
        weight_so_far += part.weight;
        least_left -= u128::from(part.least);
        most_left -= u128::from(part.most);
        let wished = (u128::from(total) * weight_so_far / weights).saturating_sub(given);
        let left = u128::from(total) - given;
        let bounded = wished.clamp(part.least.into(), part.most.max(part.least).into());
        let share = bounded.max(left.saturating_sub(most_left)).min(left.saturating_sub(least_left));
        given += share;
        shares.push(share as u64);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stand_in_the_middle_of_their_shares() {
        assert_eq!(items_below(2, 10, 4), 1, "the example");
        assert_eq!(by_quantiles(&[1, 98, 1], 10), [0, 10, 0], "one in a hundred is less than half of ten");
        assert_eq!(by_quantiles(&[1, 0, 3], 8), [2, 0, 6]);
        assert_eq!(by_quantiles(&[5, 0, 7], 12), [5, 0, 7], "as many items as there are");
        assert_eq!(
            by_quantiles(&[u64::MAX / 2, u64::MAX / 2], u64::from(u32::MAX)),
            [(1 << 31) - 1, 1 << 31]
        );
    }

    #[test]
    fn shares_add_up_within_their_bounds() {
        let part = |weight, least, most| BoundedShare { weight, least, most };
        assert_eq!(within_bounds(10, &[part(1, 0, 10), part(4, 0, 10)]), [2, 8]);
        assert_eq!(within_bounds(10, &[part(1, 4, 7), part(4, 4, 7)]), [4, 6]);
        assert_eq!(within_bounds(9, &[part(1, 2, 3), part(1, 2, 3), part(1, 2, 3)]), [3, 3, 3]);
        assert_eq!(within_bounds(3, &[part(1, 2, 3), part(1, 2, 3)]).iter().sum::<u64>(), 3, "not enough");
        assert_eq!([rounded(5, 1, 2), rounded(4, 1, 3), rounded(u64::MAX, 3, 1)], [3, 1, u64::MAX]);
    }
}
