package broker

import (
	"context"
	"time"

	"motorpool/broker/besteffort"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Vehicles reads vehicles.
type Vehicles = besteffort.Vehicles

// Commands stores commands. Its conditional writes decide all races between instances: the first to
// write wins.
type Commands interface {
	// Claim writes the row of an accepted command, with its idempotency key, and takes its lane, in
	// one step. The row is on disk when Claim returns [LAW-1]. Where the vehicle has another
	// version than the command, it has changed since the order was accepted: the claim is stale,
	// and the next Resolve reads the vehicle. A command without a version is not checked.
	Claim(context.Context, *telematics.Command) (delivery.Claim, error)
	// FindByKey returns the command or the bulk that was made under an idempotency key, in its
	// present state. It finds none where the command was not executed and never will be, or after
	// telematics.KeptFor.
	FindByKey(context.Context, telematics.IdempotencyKey) (delivery.KeyResult, bool, error)
	// Settle applies a settlement, where the lifecycle allows it, and adds its audit log entry, in
	// one step [LAW-3] [LAW-9]. It reports false, without a command, where the command does not
	// exist, was sent to another unit, or may not enter the state any more.
	Settle(context.Context, delivery.Settlement) (*telematics.Command, bool, error)
	// Updates returns the commands whose waiters may have missed a change: all that are settled,
	// and of the unanswered ones also those that their units have received.
	Updates(ctx context.Context, unanswered, received []telematics.CommandID) ([]telematics.Command, error)
	// Overdue returns up to limit open commands whose deadline is before the given time, or before
	// the database's time if that is earlier, or farther ahead than any that is accepted now.
	Overdue(ctx context.Context, before time.Time, limit int) ([]telematics.Command, error)
	besteffort.Commands
}

// Halts reads the halts that keep commands from being sent.
type Halts interface {
	// Halts returns the halts in force.
	Halts(context.Context) (telematics.Halts, error)
}

// Bulks stores orders to many vehicles.
type Bulks interface {
	// OpenBulk stores an order. Where its idempotency key is in use it reports true and stores
	// nothing.
	OpenBulk(context.Context, telematics.Bulk) (keyTaken bool, err error)
	// RefuseBulk stores why there is no command for some of the vehicles.
	RefuseBulk(context.Context, telematics.BulkID, []telematics.BulkItem) error
	// Bulk returns the order with the state of each vehicle, or a *telematics.Error with
	// BulkNotFound.
	Bulk(context.Context, telematics.BulkID) (telematics.Bulk, error)
}

// Clock is the clock of the database, which all instances share.
type Clock interface {
	// Time returns the database's time at some moment during the call.
	Time(context.Context) (time.Time, error)
}

// AuditLog adds the audit log entries that no settlement adds, such as those of refusals and of
// repeated orders.
type AuditLog interface {
	Add(context.Context, telematics.Activity) error
}

// PendingTable holds the pending entries: which instance waits for the answer to a command. It may
// lose all of them at any time, which only delays callers.
type PendingTable interface {
	// Register begins to add an entry, and returns a function that blocks until it is added, or the
	// context ends. Call that function once at most. The entry expires some time after its
	// deadline.
	Register(delivery.Pending) (added func(context.Context) error)
	// Lookup returns the entry of a command that was sent to the unit.
	Lookup(context.Context, telematics.Unit, telematics.CommandID) (delivery.Pending, bool, error)
	// Contains reports for each of the commands whether it has an entry. It uses only Unit and
	// Command.
	Contains(context.Context, []delivery.Pending) ([]bool, error)
	// Release removes the entries of settled commands. It is idempotent.
	Release(context.Context, ...delivery.Pending) error
	// Wake wakes the waiter of a command at an instance. It is a hint: it may get lost.
	Wake(ctx context.Context, instance string, id telematics.CommandID) error
	// Listen calls wake for each hint to an instance, until the context ends.
	Listen(ctx context.Context, instance string, wake func(telematics.CommandID)) error
}

// Unrecorded stores answers to commands that are not in the database.
type Unrecorded interface {
	// StoreUnrecorded stores an answer whose command is not in the database, once, with its audit
	// log entry. It returns whether the command is missing, and whether the answer was stored.
	StoreUnrecorded(context.Context, delivery.Unrecorded) (delivery.UnrecordedResult, error)
}

// Events is the event log, which every instance follows.
type Events interface {
	// Publish appends events, those of one vehicle in their order. It returns those that were not
	// appended, with the error. Where the log's reply was lost, missing may name events that were
	// appended.
	Publish(context.Context, []telematics.Event) (missing []telematics.Event, err error)
}

// Publisher hands a message to the MQTT broker.
type Publisher interface {
	// Publish returns nil once the MQTT client has accepted the message, not retained, and an error
	// only where it certainly has not.
	Publish(telematics.Transmission) error
	// Ready returns why no message to a unit can be published, or no answer be received; nil also
	// where that is expected to change within moments.
	Ready(telematics.Unit) error
}
