//! Source trees at another scale.

use nilometer_model::Bytes;

use super::parameters::scaled_count;

/// The numbers of a source tree times a factor, each at least one.
pub(super) fn scale_tree(directories: &mut u32, files: &mut u32, size: &mut Bytes, factor: f64) {
    *directories = scaled_count(u64::from(*directories), factor) as u32;
    *files = scaled_count(u64::from(*files), factor) as u32;
    *size = Bytes(scaled_count(size.0, factor));
}
