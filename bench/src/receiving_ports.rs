//! Four senders with numbers of their own, such as the boards of a back end, at a port each, beside one sender at one
//! port and the same rate: the cost of several sockets and of separate streams.

use nilometer_intake::transport::udp::{Listening, UdpInlet, UdpTogether};
use nilometer_model::{DataKind, Frequency, PixelType};
use nilometer_recording::instrument::Content;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    ours::SEED,
    receiving::{Load, ours_from, send_evenly},
    sending::{BODY, PREFIX},
};

/// 8 Gbit/s in all, in bursts.
const LOAD: Load = Load { segments: true, rate: Frequency(124_000.0), packets: 250_000 };
const SENDERS: usize = 4;

const ONE: &str = "one sender";
const AT_ONE_PORT: &str = "four senders at one port";
const AT_FOUR_PORTS: &str = "four senders at a port each";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let noise = Content::prepare(&DataKind::Vlbi.into(), &[BODY as u64 * 4], PixelType::Uint2, SEED)?;
    let noise = &noise;
    let contest = Contest {
        title: format!(
            "receiving-ports: {} packets of {} bytes at {:.1} Gbit/s in all",
            LOAD.packets,
            PREFIX + BODY,
            LOAD.rate.0 * (PREFIX + BODY) as f64 * 8e-9
        ),
        quantity: Quantity::CpuPerOperation,
        phases: &["receive"],
        rounds: 9,
        contestants: vec![
            Contestant::new(ONE, || at_one_port(noise, 1)),
            Contestant::new(AT_ONE_PORT, || at_one_port(noise, SENDERS)),
            Contestant::new(AT_FOUR_PORTS, || at_a_port_each(noise)),
        ],
        bounds: vec![Bound { subject: AT_FOUR_PORTS, peer: ONE, limit: Limit::Times(1.1) }],
    };
    contest.run(stop)
}

fn at_one_port(noise: &Content, senders: usize) -> anyhow::Result<Vec<Cost>> {
    let inlet = UdpInlet::open(&Listening::at("127.0.0.1:0".parse()?))?;
    let address = inlet.address()?;
    ours_from(Box::new(inlet), LOAD, || send_evenly(noise, LOAD, &vec![address; senders]))
}

fn at_a_port_each(noise: &Content) -> anyhow::Result<Vec<Cost>> {
    let any = Listening::at("127.0.0.1:0".parse()?);
    let inlet = UdpTogether::open(&vec![any; SENDERS])?;
    let addresses = inlet.addresses()?;
    ours_from(Box::new(inlet), LOAD, || send_evenly(noise, LOAD, &addresses))
}
