package rental

import "time"

// Plan is what the vehicles of a category cost at an agency, in one version. Amounts are without
// tax, in the agency's currency. A booking keeps the plan by which it was made.
type Plan struct {
	Version int
	// Time is charged by started minutes. Hour and Day are what an hour and a day cost at most;
	// zero: no cap. With a Minute of zero, started hours are charged, and with an Hour of zero,
	// too, days.
	Minute, Hour, Day Minor
	// Kilometer is what each started kilometer costs beyond those included in each started day.
	Kilometer   Minor
	IncludedKm  int
	PauseMinute Minor // instead of Minute, while the rental is paused; zero: as if it was not
	// ReserveMinute is what a minute between reservation and start costs, after FreeReserve.
	ReserveMinute Minor
	FreeReserve   time.Duration
	Minimum       Minor // of a rental
	Deposit       Minor
	PluggedIn     bool // a vehicle must be plugged in when it is returned
}

// Usage is what is known of a rental when it is priced.
type Usage struct {
	Reserved time.Duration // from the booking until the start
	Time     time.Duration // from start to end, pauses included
	Paused   time.Duration
	Metres   int64 // -1: not known, and not charged
}

// Line is a part of a price.
type Line struct {
	Kind     string // reservation, time, pause, distance, minimum or tax
	Quantity Hundredths
	Unit     string // minute, hour, day or km; empty: the amount alone
	Rate     Minor  // of a unit
	Amount   Minor
}
