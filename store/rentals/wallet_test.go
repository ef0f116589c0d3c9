package rentals

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/rental/wallet"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// deck are cards that the processor publishes for tests: each time one is added it is another
// payment method of the same card. They exceed the limit of a wallet.
var deck = []string{
	"pm_card_visa", "pm_card_visa_debit", "pm_card_mastercard", "pm_card_mastercard_debit", "pm_card_mastercard_prepaid", "pm_card_amex", "pm_card_discover",
	"pm_card_diners", "pm_card_jcb", "pm_card_unionpay", "pm_card_chargeCustomerFail", "pm_card_authenticationRequired",
}

// A client adds, chooses and removes cards at two instances concurrently: there is one default at
// any time, and at the end the processor holds the cards on record, and no other.
func TestWallets_OverPostgresHaveOneDefaultAndTheProcessorsCards(t *testing.T) {
	address := storetest.NewDatabase(t)
	bank := rentaltest.NewBank(t)
	actor := telematics.Actor{Subject: "anna", Role: telematics.Client, Agency: 1}
	var wallets []*wallet.Wallet
	for range 2 {
		p := openPatient(t, address)
		wallets = append(wallets, wallet.New(wallet.Config{Cards: Cards{DB: p.DB}, Processor: bank, Log: slog.New(slog.DiscardHandler)}))
		if len(wallets) == 1 {
			storetest.AddVehicle(t, p.DB, 1)
		}
	}
	list := func(w *wallet.Wallet) (methods []rental.Method) {
		methods, err := w.List(context.Background(), actor)
		defaults := slices.DeleteFunc(slices.Clone(methods), func(m rental.Method) bool { return !m.Default })
		if err != nil || len(methods) > rental.MaxMethods || (len(defaults) == 1) != (len(methods) > 0) {
			t.Errorf("%d methods, %d of them the default, %v", len(methods), len(defaults), err)
		}
		return methods
	}
	add := func(w *wallet.Wallet, makeDefault bool) error {
		_, err := w.Add(context.Background(), rental.NewCard{Token: deck[rand.IntN(len(deck))], Default: makeDefault, Actor: actor, Activity: telematics.Activity{
			Action: rental.MethodAdd, Actor: actor, Agency: actor.Agency}})
		return err
	}
	var done [3]atomic.Int32 // added, chosen, removed
	count := func(what int, err error) {
		var refusal *telematics.Error
		switch {
		case err == nil:
			done[what].Add(1)
		case !errors.As(err, &refusal) || !slices.Contains([]telematics.Code{rental.MethodLimit, rental.DefaultMethod, rental.MethodNotFound}, refusal.Code):
			t.Error(err)
		}
	}
	count(0, add(wallets[0], false))
	var work sync.WaitGroup
	for hand := range 12 {
		w := wallets[hand%2]
		work.Go(func() {
			for n := range 20 {
				methods := list(w)
				if len(methods) == 0 {
					return
				}
				r := rental.MethodRequest{Method: methods[rand.IntN(len(methods))].ID, Actor: actor, Activity: telematics.Activity{Actor: actor, Agency: actor.Agency}}
				switch n % 4 {
				case 0, 1:
					count(0, add(w, n%4 == 0))
				case 2:
					r.Activity.Action = rental.MethodDefault
					_, _, err := w.SetDefault(context.Background(), r)
					count(1, err)
				case 3:
					r.Activity.Action = rental.MethodRemove
					count(2, w.Remove(context.Background(), r))
				}
			}
		})
	}
	work.Wait()
	var tokens []string
	for _, m := range list(wallets[0]) {
		tokens = append(tokens, m.Token)
	}
	slices.Sort(tokens)
	if attached := bank.Attached(); !slices.Equal(tokens, attached) || len(tokens) == 0 {
		t.Errorf("the record has %v, the processor %v", tokens, attached)
	}
	for what := range done {
		if done[what].Load() < 3 {
			t.Errorf("too few changes for a valid test: %d added, %d chosen, %d removed", done[0].Load(), done[1].Load(), done[2].Load())
			break
		}
	}
	t.Logf("%d added, %d chosen, %d removed", done[0].Load(), done[1].Load(), done[2].Load())
}
