// Package v1 is the codec of vehicle protocol v1 (docs/protocol.md): topics, answers, reports and presence. It keeps no state and does
// no I/O.
package v1
