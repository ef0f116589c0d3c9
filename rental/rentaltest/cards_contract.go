package rentaltest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// CardRecord is one store of payment methods, as two instances of Motorpool use it.
type CardRecord struct {
	Here, There rental.Cards
	Use         func(*testing.T, rental.Method)        // makes an active booking use it
	Lines       func(*testing.T) []telematics.Activity // of all clients, oldest first
}

// CardsContract tests the contract of rental.Cards. open returns an empty store for each test.
func CardsContract(t *testing.T, open func(*testing.T) CardRecord) {
	for name, run := range map[string]func(*testing.T, CardRecord){
		"AClientIsMadeOnce":                       madeOnce,
		"TheFirstCustomerStays":                   customerStays,
		"MethodsAreNewestFirst":                   newestFirst,
		"TheFirstCardIsTheDefault":                firstIsDefault,
		"ANewDefaultTakesOver":                    takesOver,
		"TheSameCardAgainIsTheExistingMethod":     sameCard,
		"ANewExpiryRenewsTheCard":                 newExpiry,
		"CardsWithoutFingerprintDiffer":           noFingerprint,
		"TheNumberOfCardsIsLimited":               limit,
		"TheDefaultIsNotRemoved":                  defaultStays,
		"ACardInUseIsNotRemoved":                  inUse,
		"AnothersMethodDoesNotExist":              anothers,
		"ARepeatedAdditionAnswersFromThePresent":  repeatedAddition,
		"ARepeatedDefaultAnswersFromThePresent":   repeatedDefault,
		"AKeyStandsForOneRequest":                 oneRequest,
		"ADeclineIsKept":                          declineKept,
		"OneKeyAtTheSameMomentAddsOnce":           oneKeyConcurrently,
		"ACardThatIsGoneLeavesTheNewestAsDefault": droppedCard,
		"ARefreshedCardShowsItsNewExpiry":         refreshed,
		"EveryChangeLeavesALineWithoutTheToken":   lineOfChange,
		"ACardThatIsNoMethodIsToBeDetached":       toBeDetached,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// added is when the cards of the contract are added.
var added = time.Date(2026, 1, 2, 10, 0, 0, 250_000_000, time.UTC)

// NewCard returns an unused card.
func NewCard() rental.Card {
	id := uuid.NewString()
	return rental.Card{Token: "pm_" + id, Brand: "visa", LastFour: "4242", ExpMonth: 12, ExpYear: 2030, Fingerprint: "fp_" + id}
}

// NewKey returns an unused idempotency key of a client.
func NewKey(subject string) *telematics.IdempotencyKey {
	return &telematics.IdempotencyKey{Agency: 1, Subject: subject, Key: uuid.NewString(), Fingerprint: sha256.Sum256([]byte("add"))}
}

// holder is a client with its store.
type holder struct {
	CardRecord
	rental.Client
	t *testing.T
}

func (r CardRecord) client(t *testing.T) holder {
	t.Helper()
	c, err := r.Here.Client(t.Context(), 1, "client-"+uuid.NewString())
	require.NoError(t, err)
	return holder{r, c, t}
}

func (h holder) line(activity string) telematics.Activity {
	return telematics.Activity{At: added, Action: activity, Agency: 1,
		Actor: telematics.Actor{Subject: h.Subject, Role: telematics.Client, Agency: 1}}
}

func (h holder) put(card rental.Card, makeDefault bool, key *telematics.IdempotencyKey) (rental.Added, error) {
	return h.Here.AddMethod(h.t.Context(), rental.Addition{
		Client: h.ID, Card: card, Default: makeDefault, Key: key, Activity: h.line(rental.MethodAdd), Now: added,
	})
}

func (h holder) add(makeDefault bool) rental.Method {
	h.t.Helper()
	a, err := h.put(NewCard(), makeDefault, nil)
	if err != nil || a.Existed || a.Replayed || a.Unused != "" {
		h.t.Fatalf("AddMethod = %+v, %v", a, err)
	}
	return a.Method
}

func (h holder) remove(id rental.MethodID) error {
	_, err := h.Here.RemoveMethod(h.t.Context(), h.ID, id, h.line(rental.MethodRemove))
	return err
}

func (h holder) makeDefault(id rental.MethodID, key *telematics.IdempotencyKey) (rental.Method, bool, error) {
	return h.Here.SetDefault(h.t.Context(), h.ID, id, h.line(rental.MethodDefault), key)
}

// wants checks, at the other instance, the client's methods, newest first, and the default; zero:
// none.
func (h holder) wants(def rental.MethodID, ids ...rental.MethodID) []rental.Method {
	h.t.Helper()
	methods, err := h.There.Methods(h.t.Context(), h.ID)
	var got []rental.MethodID
	var defaults []rental.MethodID
	for _, m := range methods {
		got = append(got, m.ID)
		if m.Default {
			defaults = append(defaults, m.ID)
		}
	}
	wanted := []rental.MethodID{def}
	if def == 0 {
		wanted = nil
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(ids) || fmt.Sprint(defaults) != fmt.Sprint(wanted) {
		h.t.Fatalf("methods %v, default %v, %v; want %v, %v", got, defaults, err, ids, wanted)
	}
	client, err := h.There.Client(h.t.Context(), 1, h.Subject)
	if err != nil || client.Default != def {
		h.t.Fatalf("the client's default is %d, %v", client.Default, err)
	}
	return methods
}

func wantCode(t *testing.T, err error, code telematics.Code) {
	t.Helper()
	var known *telematics.Error
	if !errors.As(err, &known) || known.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
}

func madeOnce(t *testing.T, r CardRecord) {
	subject := "client-" + uuid.NewString()
	found := make([]rental.Client, 20)
	var wg sync.WaitGroup
	for i := range found {
		wg.Go(func() {
			cards := []rental.Cards{r.Here, r.There}[i%2]
			var err error
			if found[i], err = cards.Client(t.Context(), 1, subject); err != nil {
				t.Errorf("Client: %v", err)
			}
		})
	}
	wg.Wait()
	for _, c := range found {
		if c != found[0] || c.ID == 0 || c.Subject != subject || c.Agency != 1 || c.Customer != "" || c.Default != 0 {
			t.Errorf("%+v next to %+v", c, found[0])
		}
		if _, err := uuid.Parse(c.Key); err != nil {
			t.Errorf("key %q: %v", c.Key, err)
		}
	}
	if other := r.client(t); other.ID == found[0].ID || other.Key == found[0].Key {
		t.Errorf("two clients are %+v", other.Client)
	}
}

func customerStays(t *testing.T, r CardRecord) {
	h := r.client(t)
	first := "cus_" + uuid.NewString()
	for _, customer := range []string{first, "cus_" + uuid.NewString()} {
		if c, err := r.Here.SetCustomer(t.Context(), h.ID, customer); err != nil || c.Customer != first || c.ID != h.ID {
			t.Errorf("SetCustomer(%s) = %+v, %v", customer, c, err)
		}
	}
	if c, err := r.There.Client(t.Context(), 1, h.Subject); err != nil || c.Customer != first {
		t.Errorf("Client = %+v, %v", c, err)
	}
}

func newestFirst(t *testing.T, r CardRecord) {
	h := r.client(t)
	h.wants(0)
	card := NewCard()
	a, err := h.put(card, false, nil)
	if err != nil || a.Method.Card != card || a.Method.Client != h.ID || !a.Method.Created.Equal(added) {
		t.Fatalf("AddMethod = %+v, %v", a, err)
	}
	b := h.add(false)
	if methods := h.wants(a.Method.ID, b.ID, a.Method.ID); methods[1] != a.Method || methods[0] != b {
		t.Errorf("%+v\nare not what was answered\n%+v", methods, a.Method)
	}
}

func firstIsDefault(t *testing.T, r CardRecord) {
	h := r.client(t)
	first := h.add(false)
	if !first.Default {
		t.Error("the answer does not say so")
	}
	second := h.add(false)
	if second.Default {
		t.Error("so is the second")
	}
	h.wants(first.ID, second.ID, first.ID)
}

func takesOver(t *testing.T, r CardRecord) {
	h := r.client(t)
	first, second := h.add(false), h.add(true)
	h.wants(second.ID, second.ID, first.ID)
	for range 2 {
		m, replayed, err := h.makeDefault(first.ID, nil)
		if err != nil || replayed || !m.Default || m.ID != first.ID {
			t.Fatalf("SetDefault = %+v, %v, %v", m, replayed, err)
		}
		h.wants(first.ID, second.ID, first.ID)
	}
	_, _, err := h.makeDefault(second.ID+1000, nil)
	wantCode(t, err, rental.MethodNotFound)
}

func sameCard(t *testing.T, r CardRecord) {
	h := r.client(t)
	first, second := h.add(false), h.add(false)
	again := second.Card
	again.Token = NewCard().Token
	a, err := h.put(again, false, nil)
	if err != nil || !a.Existed || a.Unused != again.Token || a.Method != second {
		t.Fatalf("AddMethod = %+v, %v", a, err)
	}
	h.wants(first.ID, second.ID, first.ID)
	a, err = h.put(second.Card, true, nil) // the token too
	if err != nil || !a.Existed || a.Unused != "" || !a.Method.Default || a.Method.ID != second.ID {
		t.Fatalf("AddMethod = %+v, %v", a, err)
	}
	h.wants(second.ID, second.ID, first.ID)
	other := r.client(t) // to whom it is another card
	again.Token = NewCard().Token
	if a, err := other.put(again, false, nil); err != nil || a.Existed {
		t.Fatalf("AddMethod = %+v, %v", a, err)
	}
	_, err = other.put(rental.Card{Token: first.Token, Brand: "visa", LastFour: "4242", ExpMonth: 1, ExpYear: 2030}, false, nil)
	wantCode(t, err, rental.MethodInvalid)
}

func newExpiry(t *testing.T, r CardRecord) {
	h := r.client(t)
	first := h.add(false)
	renewed := first.Card
	renewed.Token, renewed.ExpMonth, renewed.ExpYear = NewCard().Token, 3, 2034
	a, err := h.put(renewed, false, nil)
	if err != nil || !a.Existed || a.Unused != first.Token || a.Method.ID != first.ID || a.Method.Card != renewed || !a.Method.Default {
		t.Fatalf("AddMethod = %+v, %v", a, err)
	}
	assert.Equal(t, h.wants(first.ID, first.ID)[0], a.Method, "the stored method")
	renewed.ExpYear = 2035 // at the processor, under the same token
	if a, err := h.put(renewed, false, nil); err != nil || !a.Existed || a.Unused != "" || a.Method.Card != renewed {
		t.Fatalf("AddMethod = %+v, %v", a, err)
	}
}

func noFingerprint(t *testing.T, r CardRecord) {
	h := r.client(t)
	for range 2 {
		card := NewCard()
		card.Fingerprint = ""
		if a, err := h.put(card, false, nil); err != nil || a.Existed {
			t.Errorf("AddMethod = %+v, %v", a, err)
		}
		if a, err := h.put(card, false, nil); err != nil || !a.Existed || a.Unused != "" {
			t.Errorf("the same token again: %+v, %v", a, err)
		}
	}
}

func limit(t *testing.T, r CardRecord) {
	h := r.client(t)
	var last rental.Method
	for range rental.MaxMethods {
		last = h.add(false)
	}
	_, err := h.put(NewCard(), true, nil)
	wantCode(t, err, rental.MethodLimit)
	again := last.Card
	again.Token = NewCard().Token
	if a, err := h.put(again, false, nil); err != nil || !a.Existed {
		t.Errorf("one of them again: %+v, %v", a, err)
	}
	require.NoError(t, h.remove(last.ID))
	h.add(false)
}

func defaultStays(t *testing.T, r CardRecord) {
	h := r.client(t)
	first := h.add(false)
	wantCode(t, h.remove(first.ID), rental.DefaultMethod)
	second := h.add(true)
	wantCode(t, h.remove(second.ID), rental.DefaultMethod)
	require.NoError(t, h.remove(first.ID))
	wantCode(t, h.remove(first.ID), rental.MethodNotFound)
	h.wants(second.ID, second.ID)
}

func inUse(t *testing.T, r CardRecord) {
	h := r.client(t)
	first, second := h.add(false), h.add(false)
	r.Use(t, second)
	wantCode(t, h.remove(second.ID), rental.MethodInUse)
	r.Use(t, first)
	wantCode(t, h.remove(first.ID), rental.DefaultMethod)
	h.wants(first.ID, second.ID, first.ID)
}

func anothers(t *testing.T, r CardRecord) {
	h, other := r.client(t), r.client(t)
	theirs := h.add(false)
	own := other.add(false)
	for _, id := range []rental.MethodID{theirs.ID, -1, 0, 1 << 62} {
		wantCode(t, other.remove(id), rental.MethodNotFound)
		_, _, err := other.makeDefault(id, NewKey(other.Subject))
		wantCode(t, err, rental.MethodNotFound)
	}
	h.wants(theirs.ID, theirs.ID)
	other.wants(own.ID, own.ID)
}
