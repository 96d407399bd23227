//! Writes to a file. They form a stream between two syncs. If the file grows, each write is its own append
//! instead, and is done once the data node has answered.

use std::{cell::RefCell, rc::Rc};

use nilometer_storage::Errno;

use super::{
    super::{
        server::{HdfsAsked, plain},
        words::HdfsRefusal,
    },
    HdfsClient, HdfsFile, Job,
};
use crate::{
    client::{Flight, Reply},
    growing::{GrowStep, Growing},
    http::{HttpBody, HttpMethod, HttpRequest},
};

/// A growing file, shared by the open file and its requests.
pub(super) type SharedGrowth = Rc<Growth>;

/// A file in which each write is its own append.
#[derive(Debug)]
pub(super) struct Growth {
    path: String,
    growing: RefCell<Growing>,
}

impl Growth {
    /// Makes the state of a new file.
    pub(super) fn of(path: String) -> SharedGrowth {
        Rc::new(Growth { path, growing: RefCell::default() })
    }
}

impl HdfsClient {
    pub(super) fn write(&mut self, file: &HdfsFile, flight: Flight) {
        match (&file.append, &file.growth) {
            (Some(append), _) => {
                let steps = append.borrow_mut().write(flight);
                self.take_steps(append, steps);
            }
            (None, Some(growth)) => self.grow(growth, flight),
            (None, None) => self.over(flight, Err(Errno::EBADF)),
        }
    }

    /// Syncs or closes a file.
    pub(super) fn end(&mut self, file: &HdfsFile, flight: Flight) {
        match (&file.append, &file.growth) {
            (Some(append), _) => {
                let steps = append.borrow_mut().end(flight);
                self.take_steps(append, steps);
            }
            (None, Some(growth)) => self.grow(growth, flight),
            (None, None) => self.over(flight, Ok(Reply::Done(0))),
        }
    }

    fn grow(&mut self, growth: &SharedGrowth, flight: Flight) {
        let steps = growth.growing.borrow_mut().take(flight);
        self.take_grow_steps(growth, steps);
    }

    /// Carries out the next steps of a growing file.
    fn take_grow_steps(&mut self, growth: &SharedGrowth, steps: Vec<GrowStep>) {
        for step in steps {
            match step {
                GrowStep::Over(flight, result) => self.over(flight, result.map(Reply::Done)),
                GrowStep::Add(flight) => {
                    let asked = HdfsAsked::of(HttpMethod::Post, "APPEND", &growth.path);
                    self.ask(Job::LeadGrowth(growth.clone()), &asked, flight);
                }
            }
        }
    }

    /// Sends a write to the address that the name node gave, or fails it.
    pub(super) fn lead_growth(
        &mut self,
        growth: SharedGrowth,
        flight: Flight,
        url: Result<String, HdfsRefusal>,
    ) {
        match url {
            Ok(url) => {
                let body = HttpBody::Buffer(flight.operation.length as usize);
                let request = HttpRequest { body, flight: Some(flight), ..plain(HttpMethod::Post, url) };
                self.send(Job::Grown(growth), request);
            }
            Err(refused) => self.grown(&growth, flight, Err(refused.errno)),
        }
    }

    pub(super) fn grown(&mut self, growth: &SharedGrowth, flight: Flight, outcome: Result<(), Errno>) {
        let steps = growth.growing.borrow_mut().added(flight, outcome);
        self.take_grow_steps(growth, steps);
    }
}
