package request

import (
	"context"

	"motorpool/telematics"
)

// Audit adds the entries of requests to the audit log [LAW-9].
type Audit struct {
	History  History
	Refusals Refusals
	Limits   *Limits
}

// RecordLater adds an entry that need not be durable before the answer.
func (a *Audit) RecordLater(ctx context.Context, entry telematics.Activity) {
	a.Refusals.Record(context.WithoutCancel(ctx), entry)
}

// RecordLimited adds the entry of a refusal, unless the actor had more refusals in a minute than it
// may make requests: entries cannot be deleted.
func (a *Audit) RecordLimited(ctx context.Context, entry telematics.Activity) {
	if a.Limits.refusals.take(entry.Actor, a.Limits.Now(), a.Limits.of(entry.Actor)) {
		a.Refusals.Record(ctx, entry)
	} else {
		a.Refusals.Omit(ctx, entry)
	}
}
