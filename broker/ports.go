package broker

import (
	"context"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Vehicles reads vehicles.
type Vehicles interface {
	// Twin returns the vehicle with all that is known of it now, or a *telematics.Error with
	// VehicleNotFound.
	Twin(context.Context, telematics.VehicleID) (telematics.Twin, error)
	// Resolve returns what an order depends on: the vehicle's agency, its unit, and what that can
	// do, without the reported state; or a *telematics.Error with VehicleNotFound. It may come from
	// a cache, and then be out of date, which Commands.Claim detects: so it may let an order pass,
	// and not refuse one. The caller changes nothing in it.
	Resolve(context.Context, telematics.VehicleID) (*telematics.Twin, error)
}

// Commands is the record of commands. Its conditional writes are the only
// compare-and-set there is: the first to write wins.
type Commands interface {
	// Claim writes an accepted command down, with its idempotency key, and takes its lane, in one
	// step. The command is on disk when Claim returns [LAW-1]. Where the vehicle's record has
	// changed since the order was accepted, which the command's version says, nothing is written:
	// Claim calls accept, which reads the record as it is now, and claims the command that it
	// returns instead. An error of accept is returned as it is. A command without a version is not
	// checked, and needs no accept.
	Claim(ctx context.Context, c *telematics.Command, accept func() (*telematics.Command, error)) (delivery.Claim, error)
	// FindByKey returns the command or the bulk that was made under an idempotency key, in its
	// present state. It finds none where the command was not executed and never will be, or after
	// telematics.KeptFor.
	FindByKey(context.Context, telematics.IdempotencyKey) (delivery.KeyResult, bool, error)
	// StoreProgress stores how far commands have come. It brings an open one to sent, or received,
	// and never back; of each time the first stays, and of attempts the most.
	StoreProgress(context.Context, []delivery.Note) error
	// AwaitingAnswer returns the command of a unit that awaits its answer: of a unit whose answers
	// name no command there is one at most, since Claim gives no other the lane meanwhile.
	AwaitingAnswer(context.Context, telematics.Unit) (c telematics.Command, found bool, err error)
	// AnsweredBefore returns the command that a unit whose answers name none has answered last,
	// before the given one.
	AnsweredBefore(context.Context, telematics.Command) (c telematics.Command, found bool, err error)
	// Settle applies what the lifecycle allows, and adds its audit log entry,
	// in one step [LAW-3] [LAW-9]. It reports false, without a command, where
	// the command is unknown, was sent to another unit, or may not enter the state any more.
	Settle(context.Context, delivery.Settlement) (*telematics.Command, bool, error)
	// Updates returns those of the commands that are not open any more, and of the unanswered ones
	// also those that a unit has received: what a waiter may have missed.
	Updates(ctx context.Context, unanswered, received []telematics.CommandID) ([]telematics.Command, error)
	// Overdue returns up to limit open commands with a deadline before an instant, which
	// counts at most up to the record's own time.
	Overdue(ctx context.Context, before time.Time, limit int) ([]telematics.Command, error)
	// Unconfirmed returns up to limit commands with a deadline after an instant that have ended as
	// unknown, and that a report can still settle or contradict: by their deadlines and ids, those
	// behind the given one. A command is none any more once its lane has a later one.
	Unconfirmed(ctx context.Context, since time.Time, behind telematics.Command, limit int) ([]telematics.Command, error)
	// Conclude applies what a report, read before, says of an unconfirmed command: Succeeded
	// settles it as a late answer does, and Unknown records that the report contradicts it. It
	// reports false, without a command, where it is not unconfirmed any more.
	Conclude(context.Context, delivery.Settlement) (*telematics.Command, bool, error)
}

// Halts are the halts that keep commands from being sent.
type Halts interface {
	// Halts returns those in force now.
	Halts(context.Context) (telematics.Halts, error)
}

// Bulks keeps orders to many vehicles.
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

// Clock is the record's clock, which all instances share.
type Clock interface {
	// Time returns what it says at some moment between the call and its end.
	Time(context.Context) (time.Time, error)
}

// AuditLog takes entries of what never became a command.
type AuditLog interface {
	Add(context.Context, telematics.Activity) error
}

// PendingTable holds the commands that wait for an answer, and where. It may lose
// everything at any moment: then only waiting time is lost.
type PendingTable interface {
	// Register begins to add a command, and returns a function that waits until it is added, for as
	// long as its context lasts, and is called once at most. The entry expires some time after its
	// deadline.
	Register(delivery.Pending) (added func(context.Context) error)
	// Lookup returns the entry of a command that was sent to the unit.
	Lookup(context.Context, telematics.Unit, telematics.CommandID) (delivery.Pending, bool, error)
	// Contains reports of each of the commands, by its unit and id alone, whether there is an
	// entry.
	Contains(context.Context, []delivery.Pending) ([]bool, error)
	// Release removes settled commands. It may be repeated.
	Release(context.Context, ...delivery.Pending) error
	// Wake wakes the waiter of a command at an instance. It is a hint: it may get lost.
	Wake(ctx context.Context, instance string, id telematics.CommandID) error
	// Listen calls wake for each hint to an instance, until the context ends.
	Listen(ctx context.Context, instance string, wake func(telematics.CommandID)) error
}

// Unrecorded keeps answers to commands that are not on record.
type Unrecorded interface {
	// StoreUnrecorded stores an answer whose command is not on record, once, with its audit log
	// entry, and says what became of it.
	StoreUnrecorded(context.Context, delivery.Unrecorded) (delivery.UnrecordedResult, error)
}

// Events is the log of what has changed, which every instance follows.
type Events interface {
	// Publish adds events, those of one vehicle in their order. It returns those that were not
	// added, and why. Where that cannot be known, an event is among them and is there.
	Publish(context.Context, []telematics.Event) (missing []telematics.Event, err error)
}

// Publisher hands a message to the MQTT broker.
type Publisher interface {
	// Publish returns nil once the MQTT client took the message, not retained, and an
	// error where it certainly did not.
	Publish(telematics.Transmission) error
	// Ready says what is missing before a message to a unit can be published and its answer be
	// received; nil: nothing, or what is expected within moments.
	Ready(telematics.Unit) error
}
