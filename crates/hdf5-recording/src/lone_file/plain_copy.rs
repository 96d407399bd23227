//! Copies the frames of a file without a journal as plain bytes, and verifies the copy.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::FileExt,
    thread,
};

use nilometer_hdf5::still_reads;
use nilometer_model::{ByteRate, Nanos};
use nilometer_storage::Clock;

use super::{LoneFile, LoneVerified};

/// The result of a copy.
#[derive(Debug, Clone)]
pub struct PlainCopy {
    /// The result of reading the file.
    pub verified: LoneVerified,
    /// Bytes written.
    pub bytes: u64,
    /// CRC-32 (ISO-HDLC) of these bytes.
    pub checksum: u32,
}

/// Bytes between two checks of the rate and of an interruption.
const PIECE: usize = 1 << 20;
/// The longest sleep at a time.
const NAP: Nanos = Nanos::from_millis(50);
/// Bytes read back at once.
const AT_ONCE: usize = 4 << 20;

/// Limits the rate to a number of bytes per second.
pub(super) struct Throttle {
    clock: Clock,
    begun: Nanos,
    at_most: Option<ByteRate>,
}

impl Throttle {
    pub(super) fn of(at_most: Option<ByteRate>) -> Self {
        let clock = Clock::start();
        Throttle { clock, begun: clock.now(), at_most }
    }

    /// Time until `bytes` may be written; `None` if they may be written now.
    fn left(&self, bytes: u64) -> Option<Nanos> {
        let due = self.begun + Nanos::from_seconds(bytes as f64 / self.at_most?.0);
        let now = self.clock.now();
        (due > now).then(|| due.since(now))
    }
}

impl LoneFile {
    /// Writes all frames in order, at most at the given rate. It calls `go_on` regularly with the number of bytes
    /// written, and stops when that returns false.
    ///
    /// # Errors
    /// Why they can't be written, or that it was interrupted.
    pub fn write_frames(
        &self,
        to: &mut dyn Write,
        at_most: Option<ByteRate>,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<PlainCopy, String> {
        let throttle = Throttle::of(at_most);
        let mut checksum = crc32fast::Hasher::new();
        let mut bytes = 0;
        let verified = self.each_slab(|rows| {
            for piece in rows.chunks(PIECE) {
                to.write_all(piece).map_err(|error| format!("can't write it: {error}"))?;
                checksum.update(piece);
                bytes += piece.len() as u64;
                wait(&throttle, bytes, go_on)?;
            }
            Ok(())
        })?;
        Ok(PlainCopy { verified, bytes, checksum: checksum.finalize() })
    }
}

/// Waits until `bytes` may be written.
pub(super) fn wait(
    throttle: &Throttle,
    bytes: u64,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), String> {
    loop {
        still_reads();
        if !go_on(bytes) {
            return Err("interrupted: nothing is left there".into());
        }
        let Some(left) = throttle.left(bytes) else { return Ok(()) };
        thread::sleep(left.min(NAP).duration());
    }
}

impl LoneFile {
    /// Reads all frames from storage and returns their CRC-32; it first asks the kernel to drop the file from the
    /// cache. It calls `go_on` with the number of bytes read, and stops when that returns false.
    ///
    /// # Errors
    /// If some can't be read, or it was interrupted.
    pub fn checksum_of_frames(&self, file: &File, go_on: &mut dyn FnMut(u64) -> bool) -> Result<u32, String> {
        from_storage(file).map_err(|error| error.to_string())?;
        let copy = self.write_frames(&mut io::sink(), None, go_on)?;
        match copy.verified.damages.first() {
            Some(damage) => Err(format!("the chunk at {:?}: {}", damage.begin, damage.why)),
            None => Ok(copy.checksum),
        }
    }
}

/// Asks the kernel to drop the file from the cache, whose content may differ from the storage.
fn from_storage(file: &File) -> io::Result<()> {
    file.sync_data()?;
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// Reads a copy from storage and returns its CRC-32; it first asks the kernel to drop the file from the cache. It
/// calls `go_on` with the number of bytes read, and stops when that returns false.
///
/// # Errors
/// If it can't be read, or was interrupted.
pub fn checksum_of_copy(copy: &File, go_on: &mut dyn FnMut(u64) -> bool) -> io::Result<u32> {
    from_storage(copy)?;
    let mut checksum = crc32fast::Hasher::new();
    let mut piece = vec![0; AT_ONCE];
    let mut at = 0;
    loop {
        let read = copy.read_at(&mut piece, at)?;
        if read == 0 {
            return Ok(checksum.finalize());
        }
        checksum.update(&piece[..read]);
        at += read as u64;
        still_reads();
        if !go_on(at) {
            return Err(io::Error::other("interrupted: nothing is left there"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_bytes_may_be_there_as_the_rate_gives_in_its_time() {
        let mut throttle = Throttle::of(Some(ByteRate(1e6)));
        throttle.begun = throttle.clock.now();
        assert!(throttle.left(0).is_none());
        let left = throttle.left(1_000_000_000).expect("they take a quarter of an hour");
        assert!(left > Nanos::from_seconds(900.0) && left <= Nanos::from_seconds(1000.0), "{left}");
        assert!(Throttle::of(None).left(u64::MAX).is_none());
    }
}
