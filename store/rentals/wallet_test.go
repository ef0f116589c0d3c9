package rentals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/rental/wallet"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// deck are cards that the processor publishes for tests: each time one is added it is another
// payment method of the same card. They exceed the limit of a wallet.
var deck = []string{
	"pm_card_visa", "pm_card_visa_debit", "pm_card_mastercard", "pm_card_mastercard_debit",
	"pm_card_mastercard_prepaid", "pm_card_amex", "pm_card_discover", "pm_card_diners", "pm_card_jcb",
	"pm_card_unionpay", "pm_card_chargeCustomerFail", "pm_card_authenticationRequired",
}

// A client adds, chooses and removes cards at two instances concurrently: there is one default at
// any time, and at the end the processor holds the cards on record, and no other. Each change has
// an entry in the audit log, in the order in which the changes were made.
func TestWallets_OverPostgresHaveOneDefaultAndTheProcessorsCards(t *testing.T) {
	address := storetest.NewDatabase(t)
	bank := rentaltest.NewBank(t)
	actor := telematics.Actor{Subject: "anna", Role: telematics.Client, Agency: 1}
	here, there := openPatient(t, address), openPatient(t, address)
	storetest.AddVehicle(t, here.DB, 1)
	var wallets []*wallet.Wallet
	for _, p := range []*fixture{here, there} {
		wallets = append(wallets, wallet.New(wallet.Config{Cards: Cards{DB: p.DB}, Processor: bank, Log: slog.New(slog.DiscardHandler)}))
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
		_, err := w.Add(
			context.Background(),
			rental.NewCard{Token: deck[rand.IntN(len(deck))], Default: makeDefault, Actor: actor, Activity: telematics.Activity{
				Action: rental.MethodAdd, Actor: actor, Agency: actor.Agency}},
		)
		return err
	}
	var mu sync.Mutex
	done := map[string]int{}
	count := func(what string, err error) {
		mu.Lock()
		defer mu.Unlock()
		var refusal *telematics.Error
		switch {
		case err == nil:
			done[what]++
		case !errors.As(err, &refusal) ||
			!slices.Contains([]telematics.Code{rental.MethodLimit, rental.DefaultMethod, rental.MethodNotFound}, refusal.Code):
			t.Errorf("%s: %v", what, err)
		}
	}
	count(rental.MethodAdd, add(wallets[0], false))
	var work sync.WaitGroup
	for hand := range 8 {
		w := wallets[hand%2]
		work.Go(func() {
			for n := range 20 {
				methods := list(w)
				if len(methods) == 0 {
					return
				}
				r := rental.MethodRequest{
					Method: methods[rand.IntN(len(methods))].ID, Actor: actor,
					Activity: telematics.Activity{Actor: actor, Agency: actor.Agency},
				}
				switch n % 4 {
				case 0, 1:
					count(rental.MethodAdd, add(w, n%4 == 0))
				case 2:
					r.Activity.Action = rental.MethodDefault
					_, _, err := w.SetDefault(context.Background(), r)
					count(rental.MethodDefault, err)
				case 3:
					r.Activity.Action = rental.MethodRemove
					count(rental.MethodRemove, w.Remove(context.Background(), r))
				}
			}
		})
	}
	work.Wait()
	methods := list(wallets[0])
	var tokens []string
	for _, m := range methods {
		tokens = append(tokens, m.Token)
	}
	slices.Sort(tokens)
	if attached := bank.Attached(); !slices.Equal(tokens, attached) || len(tokens) == 0 {
		t.Errorf("the record has %v, the processor %v", tokens, attached)
	}
	lines, err := here.Activities(t.Context(), telematics.ActivityQuery{Actor: actor.Subject})
	require.NoError(t, err)
	recorded, present, chosen := map[string]int{}, map[string]bool{}, ""
	for _, line := range slices.Backward(lines) {
		id := pg.JSON(line.Details["payment_method_id"]) // 1000001, not 1e+06
		recorded[line.Action]++
		switch {
		case line.Action == rental.MethodAdd:
			present[id] = true
		case !present[id] || line.Action == rental.MethodRemove && id == chosen:
			t.Errorf("the audit log has %s of %s: present %v, default %s", line.Action, id, present[id], chosen)
		case line.Action == rental.MethodRemove:
			delete(present, id)
		}
		if line.Details["is_default"] == true {
			chosen = id
		}
	}
	for _, m := range methods {
		if id := fmt.Sprint(m.ID); !present[id] || m.Default != (id == chosen) || len(present) != len(methods) {
			t.Errorf("method %+v: by the audit log present are %v, default %s", m, present, chosen)
		}
	}
	if !maps.Equal(recorded, done) || len(done) < 3 || done[rental.MethodRemove] < 5 {
		t.Errorf("the audit log has %v, the callers got %v; want the same, and some of each", recorded, done)
	}
	t.Logf("done: %v", done)
}
