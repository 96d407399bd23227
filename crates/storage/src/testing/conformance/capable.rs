//! Checks on capabilities. An engine must refuse an operation it can't do as unsupported, so that a user does
//! not read of a broken disk. A target that keeps nothing must accept everything.

use nilometer_model::Capability;

use super::checked::{Checked, NAMES};
use crate::{Buffer, OpKind, Open, Operation, ROOT, Slot, listing::Stat};

const FILE: Slot = Slot(1);
const LENGTH: u32 = 512;

/// Operations that need only this capability and no existing files. Empty for capabilities that show in other
/// ways.
fn operations(capability: Capability) -> Vec<Operation> {
    let named = |kind, file| Operation::named(kind, ROOT, file, b"n_x", Buffer::alone(NAMES));
    match capability {
        Capability::Directories => vec![named(OpKind::MakeDir, ROOT)],
        Capability::List => vec![named(OpKind::OpenDir, FILE), named(OpKind::Stat, ROOT)],
        Capability::Rename => {
            let mut buffer = Buffer::alone(NAMES);
            buffer[..8].copy_from_slice(b"n_x\0n_y\0");
            let rename = Operation::named(OpKind::Rename, ROOT, ROOT, b"n_x", buffer);
            vec![rename]
        }
        Capability::Remove => vec![named(OpKind::Unlink, ROOT), named(OpKind::RemoveDir, ROOT)],
        Capability::Write => vec![named(OpKind::Open(Open::CREATE), FILE)],
        Capability::Read => vec![named(OpKind::Open(Open::READ), FILE)],
        Capability::Keep
        | Capability::Append
        | Capability::WriteAnywhere
        | Capability::Resize
        | Capability::Sync
        | Capability::OpenRemoved
        | Capability::StrictNames
        | Capability::Mounted => Vec::new(),
    }
}

/// Checks that the engine refuses a missing capability rather than failing at it.
pub(super) fn refuses(engine: &mut Checked, lacking: &[Capability]) {
    for operation in lacking.iter().flat_map(|&capability| operations(capability)) {
        let kind = operation.kind;
        let (result, _) = engine.run(operation);
        let refused = result.is_err_and(crate::Errno::is_refusal);
        assert!(refused, "{kind:?} came to {result:?}, where the target can't do it");
    }
}

/// Checks that an engine that keeps nothing accepts everything, whole, and answers like one with empty files.
pub(super) fn takes_everything(engine: &mut Checked) {
    engine.expect_named(OpKind::MakeDir, ROOT, b"n_d", Ok(0));
    engine.expect_named(OpKind::Open(Open::CREATE), FILE, b"n_f", Ok(0));
    for offset in [0, 1 << 40] {
        let data = || Buffer::alone(LENGTH as usize);
        engine.expect("data", Operation::write(FILE, offset, LENGTH, data()), Ok(LENGTH));
        engine.expect("as much", Operation::read(FILE, offset, LENGTH, data()), Ok(LENGTH));
    }
    for kind in [OpKind::Allocate, OpKind::Truncate, OpKind::SyncData, OpKind::Sync, OpKind::Close] {
        assert_eq!(engine.on(kind, FILE, 0), Ok(0), "{kind:?}");
    }
    assert_eq!(engine.stat(b"n_f"), Ok(Stat { size: 0, directory: false }), "a file with nothing in it");
    engine.expect_named(OpKind::Unlink, ROOT, b"n_f", Ok(0));
    engine.expect_named(OpKind::RemoveDir, ROOT, b"n_d", Ok(0));
}
