// Package alerts stores alerts and their settings in Postgres, and decides in sweeps which alerts
// open and which are cleared.
//
//	snapshots ──► alert_inputs ─┐
//	bookings, commands, units, ─┼─► conditions ──► pending ──► open ──► cleared
//	charges, the audit log     ─┘   (rules.go)        │ for its time
//
// A sweep extracts what rules read from the snapshots that have changed since the last one
// (inputs.go), and evaluates each rule in one statement (sweep.go). That a condition holds, and
// since when, is a row of the table alerts from the beginning: so a restart of every instance
// resets nothing. A unique index decides that there is one open alert of a rule and a vehicle, or a
// booking of it.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package alerts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// Config configures a Store.
type Config struct {
	DB *pg.DB
	// Areas finds areas. Nil: no vehicle is outside of areas, or in one.
	Areas rental.Areas
	// Publish publishes the events of alerts. It does not block. Defaults to nothing.
	Publish func(telematics.Event)
	// Receiving reports whether messages of units arrive here: while they do not, silence says
	// nothing of a unit. Defaults to true.
	Receiving func() bool
	// TryLease takes or extends the lease for sweeps, for LeaseFor, and reports whether this
	// instance holds it. Defaults to true.
	TryLease func(context.Context) (bool, error)

	Logger  *slog.Logger          // Defaults to silence
	Metrics prometheus.Registerer // Defaults to nowhere
	Guard   *guard.Guard          // recovers panics. Nil: they are only logged
}

// Store stores alerts. It is safe for concurrent use.
type Store struct {
	Config
	metrics *metrics
	now     *time.Time // nil: the time of Postgres. Tests set it.

	alarms    chan alarm
	unwritten guard.Outage // alarms cannot be written
	unswept   guard.Outage // rules cannot be evaluated

	sweeping     sync.Mutex // guards the fields below
	receives     time.Time  // since then messages of units arrive; zero: they do not
	looked       time.Time  // when that was looked at
	swept        time.Time  // when seldom rules were evaluated
	areasVersion string     // of the areas by which all positions were checked
	checkedAll   time.Time
	drifted      []int64 // vehicles whose areas are judged by an open alert, too
}

// New assembles a store. It does no I/O; Run sweeps, and writes alarms of units.
func New(c Config) *Store {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	s := &Store{Config: c, metrics: newMetrics(c.Metrics), alarms: make(chan alarm, alarmsKept)}
	if s.Publish == nil {
		s.Publish = func(telematics.Event) {}
	}
	if s.Receiving == nil {
		s.Receiving = func() bool { return true }
	}
	if s.TryLease == nil {
		s.TryLease = func(context.Context) (bool, error) { return true, nil }
	}
	return s
}

// at returns the SQL of the time, by the parameter that has Store.now.
func at(parameter int) string {
	return fmt.Sprintf(`coalesce($%d::timestamptz, clock_timestamp())`, parameter)
}

// receivingSince returns since when messages of units have arrived, as sweeps of this instance have
// seen; zero: they do not. A machine that was suspended has received none meanwhile, as its
// connections do not tell yet: only the time that is set, and not the one that runs, shows that.
func (s *Store) receivingSince() time.Time {
	looked := s.looked
	if s.looked = time.Now().Round(0); s.looked.Sub(looked) > unlookedFor {
		s.receives = time.Time{}
	}
	switch {
	case !s.Receiving():
		s.receives = time.Time{}
	case s.receives.IsZero() && s.now != nil:
		s.receives = *s.now
	case s.receives.IsZero():
		s.receives = time.Now()
	}
	return s.receives
}
