//! The fields of kept headers as columns of numbers.

use nilometer_model::packets::{BitField, PacketFormat, Packets};

use super::{counting::Counting, header::HeaderBits};

/// The columns of kept headers, from the description of the packets.
#[derive(Debug, Clone)]
pub struct HeaderTable {
    columns: Vec<HeaderColumn>,
    counting: Counting,
}

#[derive(Debug, Clone)]
struct HeaderColumn {
    name: String,
    value: HeaderValue,
}

#[derive(Debug, Clone, Copy)]
enum HeaderValue {
    Field(HeaderBits),
    /// Both parts of a number as one.
    Joined(HeaderBits, HeaderBits),
}

impl HeaderTable {
    /// Returns the columns. `None` if the description names no field in a part of the header that is kept.
    pub fn of(packets: &Packets) -> Option<Self> {
        let PacketFormat::Numbered(numbered) = &packets.format else { return None };
        let dropped = numbered.dropped().0;
        let kept = |field: BitField| (field.offset >= dropped).then(|| HeaderBits::new(field, dropped));
        let column = |name: &str, field: BitField| {
            kept(field).map(|bits| HeaderColumn { name: name.into(), value: HeaderValue::Field(bits) })
        };
        let number = numbered.number.at;
        let upper = numbered.upper.map(|upper| upper.at);
        let joined = upper.and_then(kept).zip(kept(number));
        let joined = joined.map(|(upper, number)| HeaderColumn {
            name: "count".into(),
            value: HeaderValue::Joined(upper, number),
        });
        let mut columns: Vec<_> = joined.into_iter().collect();
        columns.extend(upper.and_then(|field| column("upper", field)));
        columns.extend(column("number", number));
        columns.extend(numbered.stream.as_ref().and_then(|stream| column("stream", stream.at)));
        columns.extend(numbered.fields.iter().filter_map(|field| column(&field.name, field.at)));
        (!columns.is_empty()).then(|| HeaderTable { columns, counting: Counting::new(numbered) })
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Returns the values of a packet from the kept bytes of its header. A value is `None` if bytes of it are absent.
    pub fn values<'a>(&'a self, packet: &'a [u8]) -> impl Iterator<Item = Option<u64>> + 'a {
        self.columns.iter().map(|column| match column.value {
            HeaderValue::Field(bits) => bits.read_kept(packet),
            HeaderValue::Joined(upper, number) => {
                Some(self.counting.joined(upper.read_kept(packet)?, number.read_kept(packet)?))
            }
        })
    }
}
