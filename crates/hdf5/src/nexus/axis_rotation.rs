//! An axis that turns the sample or the detector, and its angles during a series.

/// An axis of the goniometer, or of the arm that carries the detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GoniometerAxis {
    /// The innermost axis, which carries the sample.
    Phi,
    /// The axis of an Eulerian cradle, between omega and phi.
    Chi,
    /// The axis of a kappa goniometer, 50 degrees from omega.
    Kappa,
    /// The outermost axis of the sample.
    Omega,
    /// The axis of the detector's arm.
    TwoTheta,
}

/// The direction of a horizontal omega, in the coordinate system of McStas. Detectors do not send directions, so these
/// are the usual ones of a beamline.
const FROM_OMEGA: [f64; 3] = [-1.0, 0.0, 0.0];
const ALONG_THE_BEAM: [f64; 3] = [0.0, 0.0, 1.0];
const KAPPA: [f64; 3] = [-0.642_787_609_686_539_3, -0.766_044_443_118_978, 0.0];

impl GoniometerAxis {
    /// All variants, from the sample outwards, and then the detector's.
    pub const ALL: [GoniometerAxis; 5] = [
        GoniometerAxis::Phi,
        GoniometerAxis::Chi,
        GoniometerAxis::Kappa,
        GoniometerAxis::Omega,
        GoniometerAxis::TwoTheta,
    ];

    /// Its name, in NXmx and in the DECTRIS stream.
    pub const fn name(self) -> &'static str {
        match self {
            GoniometerAxis::Phi => "phi",
            GoniometerAxis::Chi => "chi",
            GoniometerAxis::Kappa => "kappa",
            GoniometerAxis::Omega => "omega",
            GoniometerAxis::TwoTheta => "two_theta",
        }
    }

    /// The direction of the axis: a positive angle turns right-handed about it.
    pub(super) const fn vector(self) -> [f64; 3] {
        match self {
            GoniometerAxis::Phi | GoniometerAxis::Omega | GoniometerAxis::TwoTheta => FROM_OMEGA,
            GoniometerAxis::Chi => ALONG_THE_BEAM,
            GoniometerAxis::Kappa => KAPPA,
        }
    }

    /// Its path in the file.
    pub fn path(self) -> String {
        let group = match self {
            GoniometerAxis::TwoTheta => "/entry/instrument/detector/transformations",
            _ => "/entry/sample/transformations",
        };
        format!("{group}/{}", self.name())
    }
}

/// The angles of an axis during a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisRotation {
    /// The axis.
    pub axis: GoniometerAxis,
    /// The angle at the start of the first image, in degrees.
    pub start: f64,
    /// From the start of an image to that of the next, in degrees; 0 if the axis stands still.
    pub increment: f64,
}
