"""The version of this package. It is that of the program beside which it was released."""

VERSION = "0.1.0"
