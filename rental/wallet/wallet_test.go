package wallet_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/rental/wallet"
	"motorpool/telematics"
)

var _ wallet.Vault = rental.Processor(nil)

// purse is a wallet with fake ports.
type purse struct {
	*wallet.Wallet
	t     *testing.T
	cards *rentaltest.Cards
	vault *rentaltest.Vault
	log   bytes.Buffer
}

var owner = telematics.Actor{Subject: "client-1", Role: telematics.Client, Agency: 1}

func newPurse(t *testing.T) *purse {
	p := &purse{t: t, cards: rentaltest.NewCards(), vault: rentaltest.NewVault()}
	p.Wallet = wallet.New(wallet.Config{
		Cards: p.cards, Processor: p.vault, Log: slog.New(slog.NewTextHandler(&p.log, nil)),
		Now: func() time.Time { return time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC) },
	})
	return p
}

// try adds a card that the processor issued.
func (p *purse) try(card rental.Card, change ...func(*rental.NewCard)) (rental.Added, error) {
	n := rental.NewCard{Token: card.Token, Actor: owner, Activity: telematics.Activity{At: p.Now().Add(-time.Second), Action: rental.MethodAdd, Actor: owner, Agency: 1}}
	for _, c := range change {
		c(&n)
	}
	return p.Add(p.t.Context(), n)
}

func (p *purse) issue() rental.Card { return p.vault.Issue(rentaltest.NewCard()) }

func (p *purse) add() rental.Method {
	p.t.Helper()
	added, err := p.try(p.issue())
	if err != nil {
		p.t.Fatal(err)
	}
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
	if err != nil || len(tokens) != n || !slices.Equal(tokens, p.vault.Attached()) {
		p.t.Errorf("the record has %v (%v), attached are %v; want %d in both", tokens, err, p.vault.Attached(), n)
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

func failing(method string, kind rental.ProcessorFailure) func(string, string) error {
	return func(called, _ string) error {
		if called != method {
			return nil
		}
		return &rental.ProcessorError{Kind: kind, Cause: errors.New("failure of the test")}
	}
}

func TestCustomer_IsCreatedOnceAtFirstUse(t *testing.T) {
	p := newPurse(t)
	if _, err := p.List(t.Context(), owner); err != nil || p.vault.Customers() != 0 {
		t.Errorf("%d customers after listing (%v), want none", p.vault.Customers(), err)
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
	if err != nil || p.vault.Customers() != 1 || client.Customer == "" {
		t.Errorf("%d customers, client %+v, %v; want one on record", p.vault.Customers(), client, err)
	}
	for _, key := range p.vault.Asked("CreateCustomer") {
		if key != "client-"+client.Key {
			t.Errorf("created under the key %s, want client-%s", key, client.Key)
		}
	}
	p.wantsRecorded(8)
}

func TestCustomer_CreatedWithoutAResponseIsFoundAgain(t *testing.T) {
	p := newPurse(t)
	p.vault.FailWith(failing("CreateCustomer", rental.MayHaveHappened))
	card := p.issue()
	_, err := p.try(card)
	if failure := refusal(t, err, rental.ProcessorUnavailable); !failure.Retryable || failure.RetryAfter != 10*time.Second {
		t.Errorf("failure %+v, want it retryable in 10s", failure)
	}
	p.vault.FailWith(nil)
	if _, err := p.try(card); err != nil || p.vault.Customers() != 1 {
		t.Errorf("Add: %v; %d customers, want 1", err, p.vault.Customers())
	}
	p.wantsRecorded(1)
}

// The processor stores an error as the permanent response of its key: a retry with the same key
// would never succeed.
func TestCustomer_KeyWithAPermanentErrorIsReplaced(t *testing.T) {
	p := newPurse(t)
	var once sync.Once
	p.vault.FailWith(func(method, _ string) (err error) {
		if method == "CreateCustomer" {
			once.Do(func() { err = &rental.ProcessorError{Kind: rental.BrokenThere, Cause: errors.New("500")} })
		}
		return err
	})
	p.add()
	keys := p.vault.Asked("CreateCustomer")
	if len(keys) != 2 || keys[1] != keys[0]+"-2" {
		t.Errorf("created under the keys %v, want the second with -2", keys)
	}
	other := newPurse(t)
	other.vault.FailWith(failing("CreateCustomer", rental.BrokenThere))
	_, err := other.try(other.issue())
	wantCode(t, err, rental.ProcessorUnavailable)
	if asked := other.vault.Asked("CreateCustomer"); len(asked) != 3 {
		t.Errorf("calls %v, want three", asked)
	}
}

func TestCustomer_RefusedCreationIsUnavailable(t *testing.T) {
	p := newPurse(t)
	p.vault.FailWith(failing("CreateCustomer", rental.Refused))
	_, err := p.try(p.issue())
	wantCode(t, err, telematics.Internal)
}

func TestAddMethod_AttachedWithoutAResponseIsAddedByTheRetry(t *testing.T) {
	p := newPurse(t)
	card := p.issue()
	p.vault.FailWith(failing("Attach", rental.MayHaveHappened))
	_, err := p.try(card)
	wantCode(t, err, rental.ProcessorUnavailable)
	if methods, err := p.List(t.Context(), owner); err != nil || len(methods) != 0 || len(p.vault.Attached()) != 1 {
		t.Fatalf("methods %v, %v; want none recorded and one attached", methods, err)
	}
	p.vault.FailWith(nil)
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
		rental.WrongState: rental.MethodInvalid, rental.NotDone: rental.ProcessorUnavailable, rental.MayHaveHappened: rental.ProcessorUnavailable,
		rental.BrokenThere: rental.ProcessorUnavailable, rental.NotOurs: rental.ProcessorUnavailable,
	} {
		p := newPurse(t)
		key := rentaltest.NewKey(owner.Subject)
		p.vault.FailWith(failing("Attach", kind))
		card := p.issue()
		_, err := p.try(card, func(n *rental.NewCard) { n.Key = key })
		failure := refusal(t, err, code)
		if failure.Retryable != (code == rental.ProcessorUnavailable) || failure.Message == "" {
			t.Errorf("%s: failure %+v", kind, failure)
		}
		p.vault.FailWith(nil)
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
	p.vault.FailWith(func(method, _ string) error {
		switch method {
		case "Attach":
			return &rental.ProcessorError{Kind: rental.Refused, Cause: errors.New("attached already")}
		case "Card":
			return &rental.ProcessorError{Kind: rental.NotDone, Cause: errors.New("busy")}
		}
		return nil
	})
	_, err := p.try(p.issue())
	wantCode(t, err, rental.ProcessorUnavailable)
}

func TestAddMethod_CardIsValidUntilTheEndOfItsMonth(t *testing.T) {
	p := newPurse(t) // in the last second of January
	last, over := rentaltest.NewCard(), rentaltest.NewCard()
	last.ExpMonth, last.ExpYear = 1, 2026
	over.ExpMonth, over.ExpYear = 12, 2025
	if _, err := p.try(p.vault.Issue(last)); err != nil {
		t.Errorf("a card until January was refused: %v", err)
	}
	_, err := p.try(p.vault.Issue(over))
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
		_, err := p.try(p.vault.Issue(card))
		wantCode(t, err, rental.MethodInvalid)
		p.wantsRecorded(0)
	}
}
