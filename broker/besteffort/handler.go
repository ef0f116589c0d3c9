// Package besteffort has all that the broker does because some units do less than those of protocol
// v1: they check no expiry, execute a repetition, answer without the command's id, or answer that
// they have accepted a command, not that it was executed. What callers can rely on is in
// docs/promises.md.
//
// The broker calls a Handler
//
//   - before a claim: Prepare, and NeedsState
//   - for an answer that names no command: Assign
//   - while a command waits: Delay, Inquire and Confirm
//   - at its deadline: Outcome; after that: Conclude.
//
// For a command to a unit of protocol v1, all of these do no I/O, and change nothing but that
// Outcome makes it unknown.
package besteffort

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/guard"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Vehicles reads vehicles.
type Vehicles interface {
	// Twin reads the vehicle with its reported state. It returns a *telematics.Error with
	// VehicleNotFound where there is none.
	Twin(context.Context, telematics.VehicleID) (telematics.Twin, error)
	// Resolve returns what an order depends on: the vehicle's agency, its unit and what the unit
	// can do, without the reported state; or a *telematics.Error with VehicleNotFound. The result
	// may come from a cache and be out of date. broker.Commands.Claim detects that, so callers may
	// accept an order by it, but not refuse one. Callers must not modify it.
	Resolve(context.Context, telematics.VehicleID) (*telematics.Twin, error)
}

// Commands reads and concludes the commands of such units.
type Commands interface {
	// AwaitingAnswer returns the command to a unit that awaits its answer. A unit whose answers
	// name no command has one at most, since no other is claimed for it meanwhile.
	AwaitingAnswer(context.Context, telematics.Unit) (c telematics.Command, found bool, err error)
	// AnsweredBefore returns the last answered commands before the given one, to a unit whose
	// answers name no command, the latest first; no more than limit.
	AnsweredBefore(ctx context.Context, c telematics.Command, limit int) ([]telematics.Command, error)
	// StoreProgress stores when commands were sent and received, and their attempts. It moves an
	// open command to sent or received, and never back. A time that is stored already is kept, and
	// so is a higher number of attempts.
	StoreProgress(context.Context, []delivery.Note) error
	// Unconfirmed returns up to limit commands with a deadline after since that ended as unknown,
	// and that a report can still settle or contradict. They are ordered by deadline and id, and
	// come after the given one. A command is excluded once its lane has a later one.
	Unconfirmed(ctx context.Context, since time.Time, behind telematics.Command, limit int) ([]telematics.Command, error)
	// Conclude applies to an unconfirmed command what a report has shown: Succeeded settles it as a
	// late answer does, and Unknown records that the report contradicts it. It reports false,
	// without a command, where the command is not unconfirmed any more.
	Conclude(context.Context, delivery.Settlement) (*telematics.Command, bool, error)
}

// Config configures a Handler. All fields are required.
type Config struct {
	Vehicles  Vehicles
	Commands  Commands
	Publisher interface {
		Publish(telematics.Transmission) error
	}
	Dialects telematics.Dialects

	// Settle settles a command, and publishes its event.
	Settle func(context.Context, delivery.Settlement) (*telematics.Command, bool, error)
	// Changed publishes an event.
	Changed func(telematics.Event)
	// MayPublish reports whether a message to an agency's vehicle may be published now.
	MayPublish func(telematics.AgencyID) bool
	// IsUnpublished reports whether a command is not published yet, as far as is known here.
	IsUnpublished func(telematics.CommandID) bool
	// IsPending reports whether a command is known to wait for an answer at an instance.
	IsPending func(context.Context, telematics.Unit, telematics.CommandID) bool
	Now       func() time.Time // dates what is stored

	StepTimeout time.Duration // of one call of a port
	Logger      *slog.Logger
	Metrics     prometheus.Registerer
	Guard       *guard.Guard // recovers panics of the handling of single commands
}

// Handler handles the commands of such units. It is safe for concurrent use, except Conclude.
type Handler struct {
	Config
	last   telematics.Command // that Conclude has checked; zero: it begins anew
	outage guard.Outage       // of Conclude

	answersToNone, confirmedLate, contradicted prometheus.Counter
}

// New assembles a handler and registers its metrics. It does no I/O.
func New(c Config) *Handler {
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(c.Metrics).NewCounter(prometheus.CounterOpts{Name: "motorpool_" + name, Help: help})
	}
	return &Handler{
		Config:        c,
		answersToNone: counter("answers_to_none_total", "Answers that name no command, of units without an open one that was sent."),
		confirmedLate: counter(
			"commands_confirmed_late_total",
			"Commands with an unknown outcome that a late report of their vehicle has settled; not in motorpool_commands_total.",
		),
		contradicted: counter(
			"commands_contradicted_total",
			"Commands with an unknown outcome that a report of their vehicle says were not executed; not in motorpool_commands_total.",
		),
	}
}

// step returns a context for one call of a port.
func (h *Handler) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, h.StepTimeout)
}
