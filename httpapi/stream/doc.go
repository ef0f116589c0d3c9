// Package stream sends events to subscribers as server-sent events.
//
//	log ─► Feed ─► latest events (ring) ─► subscriber ─► HTTP response
//	 └─────────────► pages ───────────────┘  until its position is in the ring
//
// The feed follows the log once and encodes each event once. A subscriber reads the ring at its own
// speed; one that resumes from an earlier event begins in the log, and continues in the ring where
// both have the same event, so no event is missing or sent twice.
//
// While the log does not answer, subscribers get the event stalled: otherwise they could
// not distinguish a failure from a time without events.
//
// Feed.Run is the only goroutine; its caller owns it. A subscriber is the goroutine of its request.
package stream
