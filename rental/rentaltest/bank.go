package rentaltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
)

// Bank is an in-memory payment processor that moves money, with a separate ledger and faults on
// demand. A request with a used key gets the first response again. Calls about cards go to the
// embedded processor. It is safe for concurrent use.
type Bank struct {
	rental.Processor // for calls that Bank does not implement; may be nil

	mu       sync.Mutex
	payments map[string]*payment // by id
	refunds  []*refund
	keys     map[string]*reply
	cards    map[string]Conduct // by token
	fault    func(Call) Fault
	tell     func(rental.Notice)
	last     int
	log      []string
	slow     bool // refunds wait
}

// Conduct is how a card behaves. The zero value pays.
type Conduct struct {
	Decline *rental.Decline // it is refused; with Action, its owner must confirm
	Gone    bool            // it no longer exists
}

type payment struct {
	rental.Intent
	identity uuid.UUID
	customer string
	hold     bool
	taken    bool // money has moved, or was held, once
	number   int
	created  time.Time
	metadata map[string]string
}

type refund struct {
	rental.Refund
	identity uuid.UUID
	payment  string
}

// reply is the response to a key; not done: the request is still in progress.
type reply struct {
	done   bool
	intent rental.Intent
	refund rental.Refund
	err    error
}

// NewBank returns a bank without faults that sends no notices.
func NewBank() *Bank {
	return &Bank{payments: map[string]*payment{}, keys: map[string]*reply{}, cards: map[string]Conduct{}}
}

// Behave sets how a card behaves from now on.
func (b *Bank) Behave(token string, c Conduct) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cards[token] = c
}

// FailWith sets a function that is called before each call and returns its fault. Nil: no faults.
func (b *Bank) FailWith(fault func(Call) Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// Tell sets a function that gets a notice of each change. It is called with the bank locked, so it
// must not call the bank.
func (b *Bank) Tell(tell func(rental.Notice)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell = tell
}

// CreateIntent prepares a payment. No money moves.
func (b *Bank) CreateIntent(ctx context.Context, key string, r rental.IntentRequest) (rental.Intent, error) {
	return b.change(ctx, Call{"CreateIntent", r.Payment.String()}, key, func() (rental.Intent, error) {
		b.last++
		p := &payment{Intent: rental.Intent{ID: fmt.Sprintf("pi_%d", b.last), Status: rental.IntentPrepared, Requested: r.Amount, Currency: r.Currency},
			identity: r.Payment, customer: r.Customer, hold: r.Hold, number: b.last, created: time.Now(), metadata: r.Metadata}
		b.payments[p.ID] = p
		return p.Intent, nil
	})
}

// Confirm executes a payment with a card.
func (b *Bank) Confirm(ctx context.Context, key, intent, token string) (rental.Intent, error) {
	return b.change(ctx, Call{"Confirm", intent}, key, func() (rental.Intent, error) {
		p, ok := b.payments[intent]
		switch card := b.cards[token]; {
		case !ok:
			return rental.Intent{}, failed(rental.NotKnown, "no such payment")
		case p.Status != rental.IntentPrepared && p.Status != rental.IntentAction:
			return rental.Intent{}, &rental.ProcessorError{Kind: rental.WrongState, Intent: &p.Intent, Cause: errors.New("the payment is " + string(p.Status))}
		case card.Gone:
			return rental.Intent{}, &rental.ProcessorError{Kind: rental.CardRefused, Decline: &rental.Decline{Code: "payment_method_unusable", Hard: true}}
		case card.Decline != nil:
			b.attempt(p)
			p.Status, p.Decline = rental.IntentPrepared, card.Decline
			if card.Decline.Action {
				p.Status = rental.IntentAction
				b.changed(rental.AboutIntent, p.ID, "payment_intent.requires_action")
				return p.Intent, nil
			}
			b.changed(rental.AboutIntent, p.ID, "payment_intent.payment_failed")
			declined := p.Intent
			return rental.Intent{}, &rental.ProcessorError{Kind: rental.CardRefused, Decline: card.Decline, Intent: &declined}
		}
		b.attempt(p)
		b.succeed(p)
		return p.Intent, nil
	})
}

func (b *Bank) attempt(p *payment) {
	b.last++
	p.Attempt, p.Decline = fmt.Sprintf("ch_%d", b.last), nil
}

func (b *Bank) succeed(p *payment) {
	p.Status, p.Amount, p.Decline, p.taken = rental.IntentSucceeded, p.Requested, nil, true
	word := "payment_intent.succeeded"
	if p.hold {
		p.Status, word = rental.IntentHeld, "payment_intent.amount_capturable_updated"
	}
	b.changed(rental.AboutIntent, p.ID, word)
}

// Intent returns a payment as it is now.
func (b *Bank) Intent(ctx context.Context, intent string) (rental.Intent, error) {
	var found rental.Intent
	err := b.read(ctx, Call{"Intent", intent}, func() error {
		p, ok := b.payments[intent]
		if !ok {
			return failed(rental.NotKnown, "no such payment")
		}
		found = p.Intent
		return nil
	})
	return found, err
}

// IntentOf returns a customer's payment with the identity of a request. One that moved money takes
// precedence.
func (b *Bank) IntentOf(ctx context.Context, r rental.IntentRequest) (found rental.Intent, ok bool, err error) {
	err = b.read(ctx, Call{"IntentOf", r.Payment.String()}, func() error {
		for _, p := range b.payments {
			if p.identity == r.Payment && p.customer == r.Customer && (!ok || p.taken) {
				found, ok = p.Intent, true
			}
		}
		if ok { // which is as good as a query of it
			b.log = append(b.log, "Intent "+found.ID)
		}
		return nil
	})
	return found, ok && err == nil, err
}

// bankPage is the length of a page of Intents.
const bankPage = 3

// Intents returns a page of all payments, newest first.
func (b *Bank) Intents(ctx context.Context, since time.Time, cursor string) (page []rental.ListedIntent, next string, err error) {
	err = b.read(ctx, Call{"Intents", cursor}, func() error {
		all := slices.SortedFunc(maps.Values(b.payments), func(p, q *payment) int { return q.number - p.number })
		if cursor != "" {
			all = all[1+slices.IndexFunc(all, func(p *payment) bool { return p.ID == cursor }):]
		}
		for _, p := range all {
			if p.created.Before(since) {
				continue
			}
			if len(page) == bankPage {
				next = page[bankPage-1].ID
				break
			}
			page = append(page, rental.ListedIntent{
				Intent: p.Intent, Payment: p.identity, Customer: p.customer, Refunded: b.refunded(p.ID), Created: p.created, Metadata: p.metadata,
			})
		}
		return nil
	})
	return page, next, err
}

// refunded returns what refunds of a payment have returned. The caller holds mu.
func (b *Bank) refunded(payment string) (sum rental.Minor) {
	for _, r := range b.refunds {
		if r.payment == payment && r.Status != rental.RefundFailed {
			sum += r.Amount
		}
	}
	return sum
}

// Capture takes a part of a held amount. The rest is released.
func (b *Bank) Capture(ctx context.Context, key, intent string, amount rental.Minor, _ rental.Currency) (rental.Intent, error) {
	return b.change(ctx, Call{"Capture", intent}, key, func() (rental.Intent, error) {
		p, ok := b.payments[intent]
		switch {
		case !ok:
			return rental.Intent{}, failed(rental.NotKnown, "no such payment")
		case p.Status != rental.IntentHeld:
			return rental.Intent{}, failed(rental.WrongState, "the payment is "+string(p.Status))
		case amount <= 0 || amount > p.Amount:
			return rental.Intent{}, failed(rental.Refused, "more than is held")
		}
		p.Status, p.Amount = rental.IntentSucceeded, amount
		b.changed(rental.AboutIntent, p.ID, "payment_intent.succeeded")
		return p.Intent, nil
	})
}

// Cancel cancels a payment that has taken no money, and releases what it holds.
func (b *Bank) Cancel(ctx context.Context, key, intent string) (rental.Intent, error) {
	return b.change(ctx, Call{"Cancel", intent}, key, func() (rental.Intent, error) {
		p, ok := b.payments[intent]
		switch {
		case !ok:
			return rental.Intent{}, failed(rental.NotKnown, "no such payment")
		case p.Status == rental.IntentSucceeded || p.Status == rental.IntentCanceled:
			return rental.Intent{}, failed(rental.WrongState, "the payment is "+string(p.Status))
		}
		p.Status, p.Amount = rental.IntentCanceled, 0
		b.changed(rental.AboutIntent, p.ID, "payment_intent.canceled")
		return p.Intent, nil
	})
}

// OwnerConfirms simulates that the card's owner confirms a payment.
func (b *Bank) OwnerConfirms(intent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.payments[intent]; p != nil && p.Status == rental.IntentAction {
		b.attempt(p)
		b.succeed(p)
	}
}

// Lapse simulates that the bank ends a hold.
func (b *Bank) Lapse(intent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.payments[intent]; p != nil && p.Status == rental.IntentHeld {
		p.Status, p.Amount = rental.IntentCanceled, 0
		b.changed(rental.AboutIntent, p.ID, "payment_intent.canceled")
	}
}

func (b *Bank) changed(k rental.NoticeKind, object, word string) {
	if b.tell != nil {
		b.last++
		b.tell(rental.Notice{ID: fmt.Sprintf("evt_%d", b.last), Type: word, Object: object, Kind: k})
	}
}

// Entry is the entry of one charge in the bank's ledger.
type Entry struct {
	Payments int          // that took or held money, ever
	Taken    rental.Minor // what it has taken
	Held     rental.Minor // what it holds
	Refunds  int          // that succeeded, or will
	Returned rental.Minor // by them
}

// Of returns the ledger entry of a charge, by its identity.
func (b *Bank) Of(charge uuid.UUID) Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	var e Entry
	for _, p := range b.payments {
		if p.identity != charge {
			continue
		}
		if p.taken {
			e.Payments++
		}
		switch p.Status {
		case rental.IntentSucceeded:
			e.Taken += p.Amount
		case rental.IntentHeld:
			e.Held += p.Amount
		}
	}
	for _, r := range b.refunds {
		if r.identity == charge && r.Status != rental.RefundFailed {
			e.Refunds++
			e.Returned += r.Amount
		}
	}
	return e
}

// Calls returns the calls in order: "Confirm pi_1 charge-…-confirm-1".
func (b *Bank) Calls() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

func failed(kind rental.ProcessorFailure, why string) *rental.ProcessorError {
	return &rental.ProcessorError{Kind: kind, Cause: errors.New(why)}
}

// wait waits for d, or fails as a call with a timeout does.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return &rental.ProcessorError{Kind: rental.MayHaveHappened, Cause: ctx.Err()}
	case <-time.After(d):
		return nil
	}
}

// Refund refunds a part of a payment.
func (b *Bank) Refund(ctx context.Context, key string, r rental.RefundRequest) (rental.Refund, error) {
	made, err := b.perform(ctx, Call{"Refund", r.Refund.String()}, key, func(answer *reply) { answer.refund, answer.err = b.giveBack(r) })
	if err != nil {
		return rental.Refund{}, err
	}
	return made.refund, made.err
}

func (b *Bank) giveBack(r rental.RefundRequest) (rental.Refund, error) {
	p, ok := b.payments[r.Intent]
	if !ok {
		return rental.Refund{}, failed(rental.NotKnown, "no such payment")
	}
	if p.Status != rental.IntentSucceeded || r.Amount > p.Amount-b.refunded(p.ID) {
		return rental.Refund{}, failed(rental.Refused, "more than is left of the payment")
	}
	b.last++
	status := rental.RefundSucceeded
	if b.slow {
		status = rental.RefundPending
	}
	made := &refund{Refund: rental.Refund{ID: fmt.Sprintf("re_%d", b.last), Status: status, Amount: r.Amount}, identity: r.Refund, payment: r.Intent}
	b.refunds = append(b.refunds, made)
	b.changed(rental.AboutRefund, made.ID, "refund.created")
	return made.Refund, nil
}

// SlowRefunds makes refunds stay pending until SettleRefund, from now on.
func (b *Bank) SlowRefunds() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = true
}

// SettleRefund settles the refund of a charge: it succeeds, or fails if why is not empty, even
// after it succeeded.
func (b *Bank) SettleRefund(charge rental.ChargeID, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.refunds {
		if r.identity == charge {
			r.Status, r.Why = rental.RefundSucceeded, why
			if why != "" {
				r.Status = rental.RefundFailed
			}
			b.changed(rental.AboutRefund, r.ID, "refund.updated")
		}
	}
}

// RefundOf returns the refund of a payment that was made for a charge.
func (b *Bank) RefundOf(ctx context.Context, intent string, identity uuid.UUID) (found rental.Refund, ok bool, err error) {
	err = b.read(ctx, Call{"RefundOf", identity.String()}, func() error {
		for _, r := range b.refunds {
			if r.identity == identity && r.payment == intent && (!ok || found.Status == rental.RefundFailed) {
				found, ok = r.Refund, true
			}
		}
		return nil
	})
	return found, ok && err == nil, err
}

// RefundByID returns a refund as it is now.
func (b *Bank) RefundByID(ctx context.Context, id string) (found rental.Refund, err error) {
	err = b.read(ctx, Call{"RefundByID", id}, func() error {
		for _, r := range b.refunds {
			if r.ID == id {
				found = r.Refund
				return nil
			}
		}
		return failed(rental.NotKnown, "no such refund")
	})
	return found, err
}
