package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/rental/wallet"
	"motorpool/simulator/sandbox"
)

// The record decides: a card that it refuses is detached again.
func TestAddMethod_BeyondTheLimitIsDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // requests that do not meet are a deadlock there
		p := newPurse(t)
		for range rental.MaxMethods - 1 {
			p.add()
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		together := &meeting{Vault: p.bank}
		together.Add(6)
		p.fails.Vault = together
		for range 6 {
			card := p.issue()
			wg.Go(func() {
				if _, err := p.try(card); err != nil {
					wantCode(t, err, rental.MethodLimit)
					mu.Lock()
					defer mu.Unlock()
					refused++
				}
			})
		}
		wg.Wait()
		assert.Equal(t, refused, 5, "cards were refused")
		p.wantsRecorded(rental.MaxMethods)
	})
}

// meeting has requests wait for each other, once each has found room.
type meeting struct {
	wallet.Vault
	sync.WaitGroup
}

func (m *meeting) Attach(ctx context.Context, customer, token string) (rental.Card, error) {
	m.Done()
	m.Wait()
	return m.Vault.Attach(ctx, customer, token)
}

func TestAddMethod_FullWalletAttachesNothing(t *testing.T) {
	p := newPurse(t)
	var last rental.Method
	for range rental.MaxMethods {
		last = p.add()
	}
	asked := len(p.bank.Asked("Attach"))
	_, err := p.try(p.issue())
	wantCode(t, err, rental.MethodLimit)
	_, err = p.try(rentaltest.NewCard()) // unknown to the processor
	wantCode(t, err, rental.MethodLimit)
	if now := len(p.bank.Asked("Attach")); now != asked {
		t.Errorf("attached %d more times, want none", now-asked)
	}
	renewed := last.Card
	renewed.Token, renewed.ExpYear = rentaltest.NewCard().Token, 2035
	// A card that the wallet has is still updated.
	added, err := p.try(p.bank.Issue(renewed, "", sandbox.Behaviour{}))
	if err != nil || !added.Existed || added.Method.Card != renewed {
		t.Errorf("added %+v, %v; want the existing card, renewed", added, err)
	}
	p.wantsRecorded(rental.MaxMethods)
}

func TestRemoveMethod_RecordComesBeforeTheProcessor(t *testing.T) {
	p := newPurse(t)
	p.add()
	m := p.add()
	p.bank.FailWith(func(c rentaltest.Call) rentaltest.Fault {
		if methods, err := p.List(t.Context(), owner); c.Method == "Detach" && (err != nil || len(methods) != 1) {
			t.Errorf("detached while the record has %d methods (%v), want 1", len(methods), err)
		}
		return rentaltest.Fault{}
	})
	require.NoError(t, p.Remove(t.Context(), rental.MethodRequest{Method: m.ID, Actor: owner}))
	p.wantsRecorded(1)
}

func TestRemoveMethod_HoldsWhileTheProcessorIsUnavailable(t *testing.T) {
	p := newPurse(t)
	p.add()
	m := p.add()
	require.NoError(t, p.bank.Break(rentaltest.Fault{Kind: sandbox.TooMany, Path: "/v1/payment_methods/*/detach", Times: -1}))
	require.NoError(t, p.Remove(t.Context(), rental.MethodRequest{Method: m.ID, Actor: owner}))
	methods, err := p.List(t.Context(), owner)
	if err != nil || len(methods) != 1 || !strings.Contains(p.log.String(), "card not detached") ||
		strings.Contains(p.log.String(), m.Token) {
		t.Errorf("methods %v, %v; log %s; want one method and an entry without the token", methods, err, p.log.String())
	}
	wantCode(t, p.Remove(t.Context(), rental.MethodRequest{Method: methods[0].ID, Actor: owner}), rental.DefaultMethod)
	if n := p.bank.Fired()[sandbox.TooMany]; n != 1 {
		t.Errorf("detached %d times, want one attempt", n)
	}
}

func TestAddMethod_DeclineThatCannotBeStoredIsReturned(t *testing.T) {
	p := newPurse(t)
	p.storeFailsAtAttach(errors.New("away"))
	lost := rental.Card{Token: "pm_card_visa_chargeDeclinedLostCard"}
	_, err := p.try(lost, func(n *rental.NewCard) { n.Key = rentaltest.NewKey(owner.Subject) })
	if decline := refusal(t, err, rental.CardDeclined); decline.Reason != "generic_decline" ||
		!strings.Contains(p.log.String(), "decline not kept") {
		t.Errorf("decline %+v; log %s", decline, p.log.String())
	}
}

func TestWallet_ChangesCompleteWhenTheCallerDisconnects(t *testing.T) {
	p := newPurse(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	card := p.issue()
	_, err := p.Add(ctx, rental.NewCard{Token: card.Token, Actor: owner})
	require.NoError(t, err)
	second := p.add()
	_, _, err = p.SetDefault(ctx, rental.MethodRequest{Method: second.ID, Actor: owner})
	require.NoError(t, err)
	first, err := p.List(t.Context(), owner)
	require.NoError(t, err)
	require.NoError(t, p.Remove(ctx, rental.MethodRequest{Method: first[1].ID, Actor: owner}))
	p.wantsRecorded(1)
}

func TestWallet_UnresponsiveProcessorTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cards := rentaltest.NewCards()
		w := wallet.New(wallet.Config{Cards: cards, Processor: silent{}, Log: slog.New(slog.DiscardHandler)})
		start := time.Now()
		_, err := w.Add(t.Context(), rental.NewCard{Token: "pm_1", Actor: owner})
		wantCode(t, err, rental.ProcessorUnavailable)
		assert.Equal(t, time.Since(start), 20*time.Second, "the call took")
	})
}

// silent is a processor that never responds.
type silent struct{ wallet.Vault }

func (silent) CreateCustomer(ctx context.Context, _ string, _ rental.Client) (string, error) {
	<-ctx.Done()
	return "", &rental.ProcessorError{Kind: rental.MayHaveHappened, Cause: ctx.Err()}
}

func TestActivity_HasTheTimeOfTheChange(t *testing.T) {
	p := newPurse(t)
	p.add()
	if line := p.cards.Lines()[0]; !line.At.Equal(p.Now()) || line.Latency != time.Second {
		t.Errorf("audit entry %+v, want the time of the change and a latency of 1s", line)
	}
}

func TestAddMethod_OneKeyAddsAndAttachesOneCard(t *testing.T) {
	p := newPurse(t)
	key := rentaltest.NewKey(owner.Subject)
	// One card; the processor creates another payment method of it for each request.
	number := rentaltest.NewCard()
	var wg sync.WaitGroup
	for i := range 8 {
		card := number
		card.Token = fmt.Sprintf("pm_%d", i)
		card.Fingerprint = ""
		p.bank.Issue(card, "", sandbox.Behaviour{})
		wg.Go(func() {
			// The processor refuses a request while it handles another one with the same key.
			for range 100 {
				_, err := p.try(card, func(n *rental.NewCard) { n.Key = key })
				if err == nil {
					return
				}
				wantCode(t, err, rental.ProcessorUnavailable)
				time.Sleep(time.Millisecond)
			}
			t.Error("no card added in 100 attempts")
		})
	}
	wg.Wait()
	p.wantsRecorded(1)
}
