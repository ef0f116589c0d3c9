package watch

import "time"

const (
	// Renewals of a watch within WatchedFor: more than two, so that it outlasts one lost message.
	// Half: one lost message ends it. Double: twice the messages.
	renewals = 2.4
	// Pause after a renewal that was not published; a choice. Half: more attempts while the MQTT
	// broker is unavailable. Double: a unit is watched again later.
	retryAfter = 5 * time.Second
	// Time from the end of the last need to the end of the watch: a browser opens its stream again
	// after 3 s. Half: units get an end and a beginning in a row. Double: they report needlessly.
	linger = 5 * time.Second

	// Time of a watch after a status was refreshed: enough for a client that refreshes each minute.
	// Half: such a client sees gaps. Double: one refresh costs two minutes of messages.
	briefly = time.Minute

	// Most messages published per pace: 4,000 a second. 100,000 units at 50 s need 2,000. Double:
	// commands share their connection with longer bursts.
	burst = 200
	pace  = 50 * time.Millisecond

	// Interval of reads of the units of running bookings, by which their watches begin late at
	// most; a choice. Half: more load on Postgres. Double: a unit reports as seldom as before for
	// up to the first 30 s of its booking.
	readEvery = 15 * time.Second
	// readTimeout bounds one of these reads.
	readTimeout = 10 * time.Second
	// LeaseFor is how long the lease for watching bookings lasts. Below readEvery plus a read: it
	// is lost in between. Double: a dead instance is replaced later.
	LeaseFor = 45 * time.Second
)
