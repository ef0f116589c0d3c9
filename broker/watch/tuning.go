package watch

import "time"

const (
	// Within WatchedFor a watch is renewed so often. Half: one lost message ends it; double: twice
	// the messages.
	renewals = 2.4
	// After a renewal that was not taken. Half: more attempts while the MQTT broker is unavailable;
	// double: a unit is watched again later.
	retryAfter = 5 * time.Second
	// Between the end of the last need and the end of the watch: a browser opens its stream again
	// after 3 s. Half: units get an end and a beginning in a row; double: they report needlessly.
	linger = 5 * time.Second

	// After a status was refreshed. Half: who refreshes each minute sees stops; double: one look
	// costs two minutes of messages.
	briefly = time.Minute

	// What is published at most, in messages per pace: 4,000 a second. 100,000 units at 50 s need
	// 2,000. Double: commands share their connection with longer bursts.
	burst = 200
	pace  = 50 * time.Millisecond

	// Between two reads of the units of running bookings. Half: more load of Postgres; double:
	// the first minute of a booking is seen late.
	readEvery = 15 * time.Second
	// readTimeout bounds one of these reads.
	readTimeout = 10 * time.Second
	// TurnFor is how long an instance holds the turn to watch for bookings after it has asked.
	// Below readEvery and a read: the turn is lost in between; double: a dead instance is
	// replaced later.
	TurnFor = 45 * time.Second
)
