package audit

import (
	"slices"
	"time"

	"motorpool/telematics"
)

// Shown is what an answer said of a vehicle. Times have whole seconds, as in the map.
type Shown struct {
	Start, End time.Time // of the call
	By         string    // the resource
	Vehicle    telematics.VehicleID
	LastSeen   time.Time // zero: never
	LocatedAt  time.Time // by the unit's clock; zero: not known
	NoPosition bool      // the resource has none
	Stored     bool      // the answer does not say that later ones may be older
}

// unstoredBack is how much older a later answer may be, where the answer says that it may be: the
// default of --state-interval, and the time in which the state is written.
const unstoredBack = time.Minute + 15*time.Second

// shownStays checks that no answer is older than one that had ended before it began: at all, or,
// where the earlier one says so, by more than the promises allow. Exempt is what was shown when
// commits were lost.
func shownStays(chk *checker) {
	byVehicle := groupBy(chk.Shown, func(s *Shown) telematics.VehicleID { return s.Vehicle })
	for vehicle, all := range byVehicle {
		positions := slices.DeleteFunc(slices.Clone(all), func(s *Shown) bool { return s.NoPosition })
		for _, what := range []struct {
			name string
			all  []*Shown
			of   func(*Shown) time.Time
		}{
			{"last_seen", all, func(s *Shown) time.Time { return s.LastSeen }},
			{"the position", positions, func(s *Shown) time.Time { return s.LocatedAt }},
		} {
			ended := slices.SortedFunc(slices.Values(what.all), func(a, b *Shown) int { return a.End.Compare(b.End) })
			begun := slices.SortedFunc(slices.Values(what.all), func(a, b *Shown) int { return a.Start.Compare(b.Start) })
			var first time.Time // that was ever shown: before, nothing was known
			for _, s := range what.all {
				if at := what.of(s); !at.IsZero() && (first.IsZero() || at.Before(first)) {
					first = at
				}
			}
			var least time.Time // of every later answer
			var since *Shown
			for _, s := range begun {
				for len(ended) > 0 && ended[0].End.Before(s.Start) {
					earlier := ended[0]
					ended = ended[1:]
					at := what.of(earlier)
					if !earlier.Stored {
						if at = at.Add(-unstoredBack); at.Before(first) {
							at = time.Time{} // a later answer may have nothing
						}
					}
					if since == nil || at.After(least) {
						least, since = at, earlier
					}
				}
				if since == nil {
					continue
				}
				shown := what.of(s)
				chk.must(
					!shown.Before(least), subject{},
					"%s of vehicle %d was %s in %s at %s (stored: %t), and %s in %s at %s: back by %v", what.name,
					vehicle, clock(what.of(since)), since.By, clock(since.End), since.Stored, clock(shown), s.By,
					clock(s.Start), what.of(since).Sub(shown),
				)
			}
		}
	}
}
