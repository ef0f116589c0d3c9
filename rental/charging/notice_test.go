package charging_test

import (
	"slices"
	"testing"
	"time"

	"motorpool/rental"
)

func (w *world) tell(id string, k rental.NoticeKind, object string) {
	w.t.Helper()
	if err := w.notices.Keep(w.t.Context(), rental.Notice{ID: id, Type: "any", Object: object, Kind: k}); err != nil {
		w.t.Fatal(err)
	}
}

func TestANoticeAboutACardIsLookedUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.cards.bound = map[string]string{"pm_renewed": "cus_1", "pm_detached": ""}
		c := w.collect(nil)
		w.tell("1", rental.AboutCard, "pm_renewed")
		w.tell("2", rental.AboutCard, "pm_detached")
		w.tell("3", rental.AboutCard, "pm_deleted")
		w.after(time.Minute)
		slices.Sort(w.cards.dropped)
		if !slices.Equal(w.cards.dropped, []string{"pm_deleted", "pm_detached"}) {
			t.Errorf("dropped %v", w.cards.dropped)
		}
		if len(w.cards.refreshed) != 1 || w.cards.refreshed[0].Token != "pm_renewed" || w.cards.refreshed[0].ExpYear != 2031 {
			t.Errorf("refreshed %v", w.cards.refreshed)
		}
		if n := metric(t, c, cardNotices); n != 3 || w.notices.Open() != 0 {
			t.Errorf("%d notices of cards, %d open", n, w.notices.Open())
		}
	})
}

// An account may be shared with others, whose customers pay by other means.
func TestANoticeAboutAPaymentMethodThatIsNoCardIsHandled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.cards.noCard = true
		c := w.collect(nil)
		w.tell("1", rental.AboutCard, "pm_sepa")
		w.after(time.Minute)
		if metric(t, c, unknownNotices) != 1 || metric(t, c, failedNotices) != 0 || w.notices.Open() != 0 || len(w.cards.dropped) != 0 {
			t.Errorf("%d open, dropped %v", w.notices.Open(), w.cards.dropped)
		}
	})
}

func TestANoticeThatCannotBeHandledComesAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.cards.failing = true
		c := w.collect(nil)
		w.tell("1", rental.AboutCard, "pm_1")
		w.after(10 * time.Minute)
		if n := metric(t, c, failedNotices); n < 4 || n > 7 || w.notices.Open() != 1 {
			t.Fatalf("failed %d times in 10 minutes, %d open", n, w.notices.Open())
		}
		w.cards.mu.Lock()
		w.cards.failing = false
		w.cards.mu.Unlock()
		w.after(6 * time.Minute)
		if len(w.cards.dropped) != 1 || w.notices.Open() != 0 {
			t.Errorf("dropped %v, %d open", w.cards.dropped, w.notices.Open())
		}
	})
}

func TestNotice_OfAnUnknownOrSettledObjectIsHandled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		c := w.collect(nil)
		charge := w.paid(client)
		before := w.is(charge)
		w.tell("1", rental.AboutIntent, "pi_of_somebody")
		w.tell("2", rental.AboutOther, "dp_1")
		w.tell("3", rental.AboutIntent, before.Intent)
		w.after(time.Minute)
		if w.notices.Open() != 0 || metric(t, c, unknownNotices) < 2 || metric(t, c, finalNotices) < 1 {
			t.Errorf("%d open, %d of unknown objects, %d of final charges", w.notices.Open(), metric(t, c, unknownNotices), metric(t, c, finalNotices))
		}
		if after := w.is(charge); after != before {
			t.Errorf("the charge became %+v", after)
		}
	})
}
