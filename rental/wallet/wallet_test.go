package wallet_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/rental/wallet"
	"motorpool/simulator/sandbox"
	"motorpool/telematics"
)

var _ wallet.Vault = rental.Processor(nil)

// purse is a wallet with fake ports.
type purse struct {
	*wallet.Wallet
	t     *testing.T
	cards *rentaltest.Cards
	bank  *rentaltest.Bank
	fails *failing // between the wallet and the bank
	log   bytes.Buffer
}

var owner = telematics.Actor{Subject: "client-1", Role: telematics.Client, Agency: 1}

func newPurse(t *testing.T) *purse {
	p := &purse{t: t, cards: rentaltest.NewCards(), bank: rentaltest.NewBank(t)}
	p.fails = &failing{Vault: p.bank}
	p.Wallet = wallet.New(wallet.Config{
		Cards: p.cards, Processor: p.fails, Log: slog.New(slog.NewTextHandler(&p.log, nil)),
		Now: func() time.Time { return time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC) },
	})
	return p
}

// try adds a card that the processor issued.
func (p *purse) try(card rental.Card, change ...func(*rental.NewCard)) (rental.Added, error) {
	n := rental.NewCard{
		Token: card.Token, Actor: owner,
		Activity: telematics.Activity{At: p.Now().Add(-time.Second), Action: rental.MethodAdd, Actor: owner, Agency: 1},
	}
	for _, c := range change {
		c(&n)
	}
	return p.Add(p.t.Context(), n)
}

func (p *purse) issue() rental.Card {
	return p.bank.Issue(rentaltest.NewCard(), "", sandbox.Behaviour{})
}

// storeFailsAtAttach makes the store fail from the next attachment on.
func (p *purse) storeFailsAtAttach(err error) {
	p.bank.FailWith(func(c rentaltest.Call) rentaltest.Fault {
		if c.Method == "Attach" {
			p.cards.FailWith(err)
		}
		return rentaltest.Fault{}
	})
}

func (p *purse) add() rental.Method {
	p.t.Helper()
	added, err := p.try(p.issue())
	require.NoError(p.t, err)
	return added.Method
}

// wantsRecorded checks that the record has n cards, and the processor exactly these attached.
func (p *purse) wantsRecorded(n int) {
	p.t.Helper()
	methods, err := p.List(p.t.Context(), owner)
	var tokens []string
	for _, m := range methods {
		tokens = append(tokens, m.Token)
	}
	slices.Sort(tokens)
	if err != nil || len(tokens) != n || !slices.Equal(tokens, p.bank.Attached()) {
		p.t.Errorf("the record has %v (%v), attached are %v; want %d in both", tokens, err, p.bank.Attached(), n)
	}
}

func wantCode(t *testing.T, err error, code telematics.Code) {
	t.Helper()
	if known := refusal(t, err, code); known.Message == "" {
		t.Errorf("the error %s has no message", code)
	}
}

// refusal returns the error that the client receives, which must have the code.
func refusal(t *testing.T, err error, code telematics.Code) *telematics.Error {
	t.Helper()
	var known *telematics.Error
	if !errors.As(err, &known) || known.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	return known
}

// failing is a processor that a call cannot be made of, or not be made twice.
type failing struct {
	wallet.Vault
	customer, attach rental.ProcessorFailure // empty: it goes well
}

func (f *failing) CreateCustomer(ctx context.Context, key string, c rental.Client) (string, error) {
	if f.customer != "" {
		return "", &rental.ProcessorError{Kind: f.customer, Cause: errors.New("failure of the test")}
	}
	return f.Vault.CreateCustomer(ctx, key, c)
}

func (f *failing) Attach(ctx context.Context, customer, token string) (rental.Card, error) {
	if f.attach != "" {
		return rental.Card{}, &rental.ProcessorError{Kind: f.attach, Cause: errors.New("failure of the test")}
	}
	return f.Vault.Attach(ctx, customer, token)
}

func TestCustomer_IsCreatedOnceAtFirstUse(t *testing.T) {
	p := newPurse(t)
	if _, err := p.List(t.Context(), owner); err != nil || p.bank.Customers() != 0 {
		t.Errorf("%d customers after listing (%v), want none", p.bank.Customers(), err)
	}
	var wg sync.WaitGroup
	for range 8 {
		card := p.issue()
		wg.Go(func() {
			if _, err := p.try(card); err != nil {
				t.Errorf("Add: %v", err)
			}
		})
	}
	wg.Wait()
	client, err := p.cards.Client(t.Context(), 1, owner.Subject)
	if err != nil || p.bank.Customers() != 1 || client.Customer == "" {
		t.Errorf("%d customers, client %+v, %v; want one on record", p.bank.Customers(), client, err)
	}
	for _, key := range p.bank.Asked("CreateCustomer") {
		if key != "client-"+client.Key {
			t.Errorf("created under the key %s, want client-%s", key, client.Key)
		}
	}
	p.wantsRecorded(8)
}

func TestCustomer_CreatedWithoutAResponseIsFoundAgain(t *testing.T) {
	p := newPurse(t)
	p.bank.FailAll("CreateCustomer", sandbox.ResetAfter)
	card := p.issue()
	_, err := p.try(card)
	if failure := refusal(t, err, rental.ProcessorUnavailable); !failure.Retryable || failure.RetryAfter != 10*time.Second {
		t.Errorf("failure %+v, want it retryable in 10s", failure)
	}
	p.bank.FailWith(nil)
	if _, err := p.try(card); err != nil || p.bank.Customers() != 1 {
		t.Errorf("Add: %v; %d customers, want 1", err, p.bank.Customers())
	}
	p.wantsRecorded(1)
}

// The processor stores an error as the permanent response of its key: a retry with the same key
// would never succeed.
func TestCustomer_KeyWithAPermanentErrorIsReplaced(t *testing.T) {
	p := newPurse(t)
	var failed bool
	p.bank.FailWith(func(c rentaltest.Call) rentaltest.Fault {
		if c.Method != "CreateCustomer" || failed {
			return rentaltest.Fault{}
		}
		failed = true
		return rentaltest.Fault{Kind: sandbox.FailBefore}
	})
	p.add()
	keys := p.bank.Asked("CreateCustomer")
	if len(keys) != 2 || keys[1] != keys[0]+"-2" {
		t.Errorf("created under the keys %v, want the second with -2", keys)
	}
	other := newPurse(t)
	other.bank.FailAll("CreateCustomer", sandbox.FailBefore)
	_, err := other.try(other.issue())
	wantCode(t, err, rental.ProcessorUnavailable)
	if asked := other.bank.Asked("CreateCustomer"); len(asked) != 3 {
		t.Errorf("calls %v, want three", asked)
	}
}

func TestCustomer_RefusedCreationIsUnavailable(t *testing.T) {
	p := newPurse(t)
	p.fails.customer = rental.Refused
	_, err := p.try(p.issue())
	wantCode(t, err, telematics.Internal)
}

func TestAddMethod_AttachedWithoutAResponseIsAddedByTheRetry(t *testing.T) {
	p := newPurse(t)
	card := p.issue()
	p.bank.FailAll("Attach", sandbox.ResetAfter)
	_, err := p.try(card)
	wantCode(t, err, rental.ProcessorUnavailable)
	if methods, err := p.List(t.Context(), owner); err != nil || len(methods) != 0 || len(p.bank.Attached()) != 1 {
		t.Fatalf("methods %v, %v; want none recorded and one attached", methods, err)
	}
	p.bank.FailWith(nil)
	added, err := p.try(card)
	if err != nil || added.Existed || added.Method.Card != card {
		t.Fatalf("added %+v, %v; want the new card", added, err)
	}
	p.wantsRecorded(1)
	again, err := p.try(card)
	if err != nil || !again.Existed || again.Method != added.Method {
		t.Errorf("added again %+v, %v; want the existing one", again, err)
	}
	p.wantsRecorded(1)
}

func TestWallet_DistinguishesFailuresOfTheProcessor(t *testing.T) {
	for kind, code := range map[rental.ProcessorFailure]telematics.Code{
		rental.CardRefused: rental.CardDeclined, rental.NotKnown: rental.MethodInvalid, rental.Refused: rental.MethodInvalid,
		rental.WrongState: rental.MethodInvalid, rental.NotDone: rental.ProcessorUnavailable,
		rental.MayHaveHappened: rental.ProcessorUnavailable,
		rental.BrokenThere:     rental.ProcessorUnavailable, rental.NotOurs: rental.ProcessorUnavailable,
	} {
		p := newPurse(t)
		key := rentaltest.NewKey(owner.Subject)
		p.fails.attach = kind
		card := p.issue()
		_, err := p.try(card, func(n *rental.NewCard) { n.Key = key })
		failure := refusal(t, err, code)
		if failure.Retryable != (code == rental.ProcessorUnavailable) || failure.Message == "" {
			t.Errorf("%s: failure %+v", kind, failure)
		}
		p.fails.attach = ""
		_, err = p.try(card, func(n *rental.NewCard) { n.Key = key })
		if kept := code == rental.CardDeclined; kept {
			wantCode(t, err, rental.CardDeclined)
		} else if err != nil {
			t.Errorf("%s: the retry with the same key: %v", kind, err)
		}
		if logged := strings.Contains(p.log.String(), "rejected the api key"); logged != (kind == rental.NotOurs) {
			t.Errorf("failure %s: log %s", kind, p.log.String())
		}
	}
}

func TestAddMethod_FailedQueryIsUnavailable(t *testing.T) {
	p := newPurse(t)
	p.bank.FailAll("Card", sandbox.TooMany)
	_, err := p.try(p.bank.Issue(rentaltest.NewCard(), "cus_other", sandbox.Behaviour{}))
	wantCode(t, err, rental.ProcessorUnavailable)
}

func TestAddMethod_CardIsValidUntilTheEndOfItsMonth(t *testing.T) {
	p := newPurse(t) // in the last second of January
	last, over := rentaltest.NewCard(), rentaltest.NewCard()
	last.ExpMonth, last.ExpYear = 1, 2026
	over.ExpMonth, over.ExpYear = 12, 2025
	if _, err := p.try(p.bank.Issue(last, "", sandbox.Behaviour{})); err != nil {
		t.Errorf("a card until January was refused: %v", err)
	}
	_, err := p.try(p.bank.Issue(over, "", sandbox.Behaviour{}))
	if refused := refusal(t, err, rental.MethodInvalid); !strings.Contains(refused.Message, "expired") {
		t.Errorf("message %q, want that the card expired", refused.Message)
	}
	p.wantsRecorded(1)
}

func TestWallet_InvalidCardIsNotStored(t *testing.T) {
	for _, spoil := range []func(*rental.Card){
		func(c *rental.Card) { c.LastFour = "" }, func(c *rental.Card) { c.LastFour = "12a4" },
		func(c *rental.Card) { c.ExpMonth = 13 }, func(c *rental.Card) { c.ExpMonth = 0 }, func(c *rental.Card) { c.ExpYear = 30 },
	} {
		p := newPurse(t)
		card := rentaltest.NewCard()
		spoil(&card)
		_, err := p.try(p.bank.Issue(card, "", sandbox.Behaviour{}))
		wantCode(t, err, rental.MethodInvalid)
		p.wantsRecorded(0)
	}
}
