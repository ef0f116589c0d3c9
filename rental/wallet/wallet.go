// Package wallet manages the payment methods of clients, in Postgres and at the processor.
package wallet

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// Vault is the part of a [rental.Processor] that holds cards.
type Vault interface {
	CreateCustomer(ctx context.Context, key string, c rental.Client) (string, error)
	Attach(ctx context.Context, customer, token string) (rental.Card, error)
	Detach(ctx context.Context, token string) error
	Card(ctx context.Context, token string) (rental.Card, string, error)
}

// Config assembles a wallet. Cards and Processor are required.
type Config struct {
	Cards     rental.Cards
	Processor Vault
	// Budget bounds a change, including all calls of the processor. Defaults to 20 s.
	Budget time.Duration
	// Log gets the causes of errors, which clients do not see. Defaults to slog.Default().
	Log *slog.Logger
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Wallet manages the payment methods of clients, in Postgres and at the processor.
//
// Postgres decides which card is charged: a card is attached at the processor before it is
// stored, and deleted from Postgres before it is detached there. A failure in between leaves a
// card at the processor that is never charged, not a stored card that does not exist. Postgres has
// each such card as one to detach, which Run does.
//
// It is safe for concurrent use. A caller that disconnects does not interrupt a change.
type Wallet struct{ Config }

// New assembles a wallet.
func New(config Config) *Wallet {
	config.Budget = cmp.Or(config.Budget, 20*time.Second)
	config.Log = cmp.Or(config.Log, slog.Default())
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Wallet{config}
}

// List returns the client's payment methods, newest first. It fails with the error of Cards.
func (w *Wallet) List(ctx context.Context, actor telematics.Actor) ([]rental.Method, error) {
	client, err := w.Cards.Client(ctx, actor.Agency, actor.Subject)
	if err != nil {
		return nil, err
	}
	return w.Cards.Methods(ctx, client.ID)
}

// Remove removes a payment method. It fails with MethodNotFound, DefaultMethod or MethodInUse.
func (w *Wallet) Remove(ctx context.Context, r rental.MethodRequest) error {
	ctx, cancel := w.change(ctx)
	defer cancel()
	client, err := w.Cards.Client(ctx, r.Actor.Agency, r.Actor.Subject)
	if err != nil {
		return err
	}
	removed, err := w.Cards.RemoveMethod(ctx, client.ID, r.Method, w.dateNow(r.Activity))
	if err != nil {
		return err
	}
	w.detach(ctx, client.ID, removed.Token)
	return nil
}

// SetDefault makes a payment method the default. It returns true if an earlier request with the
// same idempotency key did so; the method is then returned as it is now. It fails with
// MethodNotFound.
func (w *Wallet) SetDefault(ctx context.Context, r rental.MethodRequest) (rental.Method, bool, error) {
	ctx, cancel := w.change(ctx)
	defer cancel()
	client, err := w.Cards.Client(ctx, r.Actor.Agency, r.Actor.Subject)
	if err != nil {
		return rental.Method{}, false, err
	}
	return w.Cards.SetDefault(ctx, client.ID, r.Method, w.dateNow(r.Activity), r.Key)
}

// change returns the context of a change: it does not end with the caller's, but after Budget.
func (w *Wallet) change(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), w.Budget)
}

// dateNow sets the time of an entry to now, and adds the elapsed time to its latency.
func (w *Wallet) dateNow(entry telematics.Activity) telematics.Activity {
	now := w.Now()
	entry.Latency += now.Sub(entry.At)
	entry.At = now
	return entry
}
