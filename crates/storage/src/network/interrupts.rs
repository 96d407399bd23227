//! The processors that the queues of a network card wake.

use std::{fmt, fs};

use super::{kernel_text, links::interface_folder};

/// The interrupts of an interface since the machine started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterruptSpread {
    /// Interrupts that occurred at all: one per queue in use.
    pub queues: usize,
    /// Each processor that was woken, with its share of all interrupts in percent.
    pub processors: Vec<(usize, u64)>,
}

impl fmt::Display for InterruptSpread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares: Vec<_> =
            self.processors.iter().map(|(processor, share)| format!("cpu{processor} {share} %")).collect();
        write!(f, "{} queues wake {}", self.queues, shares.join(", "))
    }
}

impl InterruptSpread {
    /// Reads the interrupts of an interface; `None` if `/proc/interrupts` lists none.
    pub fn of(name: &str) -> Option<Self> {
        let device = interface_folder(name).join("device");
        // A virtual card's interrupts belong to the device above it.
        let numbers = [device.join("msi_irqs"), device.join("../msi_irqs")].into_iter().find_map(|folder| {
            let entries = fs::read_dir(folder).ok()?.flatten();
            Some(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>())
        });
        let table = kernel_text("/proc/interrupts").unwrap_or_default();
        InterruptSpread::in_table(name, &table, &numbers.unwrap_or_default())
    }

    /// Sums the lines with these interrupt numbers, or those that name the interface.
    fn in_table(name: &str, table: &str, numbers: &[String]) -> Option<Self> {
        // Offline processors have no column.
        let head = table.lines().next().unwrap_or_default().split_whitespace();
        let columns: Vec<usize> = head.filter_map(|name| name.strip_prefix("CPU")?.parse().ok()).collect();
        let processors = columns.len();
        let mut by_processor = vec![0_u64; processors];
        let mut queues = 0;
        for line in table.lines().skip(1) {
            let Some((number, rest)) = line.split_once(':') else { continue };
            let own = numbers.iter().any(|own| own == number.trim())
                || rest.split_whitespace().any(|word| word == name || word.starts_with(&format!("{name}-")));
            let counts: Vec<u64> =
                rest.split_whitespace().take(processors).filter_map(|count| count.parse().ok()).collect();
            if own && counts.iter().any(|count| *count > 0) {
                queues += 1;
                counts.iter().zip(&mut by_processor).for_each(|(count, sum)| *sum += count);
            }
        }
        let all: u64 = by_processor.iter().sum();
        let woken = columns.into_iter().zip(by_processor).filter(|(_, count)| *count > 0);
        let processors = woken.map(|(processor, count)| (processor, 100 * count / all)).collect();
        (all > 0).then_some(InterruptSpread { queues, processors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_found_by_number_or_name() {
        let table = "           CPU0       CPU1\n 24:  90  10  PCI-MSI 1-edge  virtio0-input.0\n 25:  0  100  PCI-MSI 2-edge  eth1-TxRx-0\n\
                     NMI:  5  5  Non-maskable interrupts\n";
        let said = |name, table, numbers: &[String]| {
            InterruptSpread::in_table(name, table, numbers).map(|spread| spread.to_string())
        };
        assert_eq!(
            said("eth0", table, &["24".into()]).as_deref(),
            Some("1 queues wake cpu0 90 %, cpu1 10 %")
        );
        assert_eq!(said("eth1", table, &[]).as_deref(), Some("1 queues wake cpu1 100 %"));
        assert_eq!(said("eth2", table, &[]), None);
        let offline = table.replace("CPU1", "CPU2");
        assert_eq!(said("eth1", &offline, &[]).as_deref(), Some("1 queues wake cpu2 100 %"));
        let two = table.replace("90  10", "0  10").replace("virtio0-input.0", "eth1-TxRx-1");
        assert_eq!(said("eth1", &two, &[]).as_deref(), Some("2 queues wake cpu1 100 %"));
    }
}
