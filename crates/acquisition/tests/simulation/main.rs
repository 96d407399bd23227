//! The recorder in virtual time: the same source, ring, writers and sinks as on threads, on simulated targets.

/// What an engine that wraps another one leaves to it.
macro_rules! forwards {
    ($inner:ident) => {
        fn depth(&self) -> usize {
            self.$inner.depth()
        }
        fn now(&self) -> nilometer_model::Nanos {
            self.$inner.now()
        }
        fn tick(&mut self) -> nilometer_model::Nanos {
            self.$inner.tick()
        }
        fn waker(&self) -> std::sync::Arc<dyn nilometer_storage::Wake> {
            self.$inner.waker()
        }
        fn register(
            &mut self,
            arena: &std::sync::Arc<nilometer_storage::Arena>,
        ) -> Result<(), nilometer_storage::EngineError> {
            self.$inner.register(arena)
        }
    };
}
pub(crate) use forwards;

mod conformance;
mod crashes;
mod failures;
mod followers;
mod hdf5;
mod lab;
mod limits;
mod overtaken;
mod packets;
mod positions;
mod pretending;
mod reading;
mod repair;
mod room;
mod scattered;
mod storing;
mod virtual_time;
mod whole_files;
