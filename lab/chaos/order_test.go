package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"motorpool/lab/chaos/audit"
	"motorpool/telematics"
)

func TestDraw_SameSeedSameOrders(t *testing.T) {
	one, again, other := newDraw(7, 3, mixed, 3), newDraw(7, 3, mixed, 3), newDraw(7, 4, mixed, 3)
	same := true
	for range 100 {
		first := one.order()
		if !reflect.DeepEqual(first, again.order()) {
			t.Fatal("one seed gave two orders")
		}
		same = same && reflect.DeepEqual(first, other.order())
	}
	if same {
		t.Error("two callers sent the same orders")
	}
}

func TestDraw_OrdersGoToEveryVehicleAndEveryLane(t *testing.T) {
	d := newDraw(1, 0, mixed, 3)
	cars, lanes, keys := map[int]bool{}, map[telematics.Lane]int{}, map[string]bool{}
	withKey, toMany := 0, 0
	const orders = 10_000
	for range orders {
		o := d.order()
		cars[o.car] = true
		lanes[o.action.Lane()]++
		if len(o.more) > 0 {
			toMany++
		}
		if o.key != "" {
			withKey++
			keys[o.key] = true
		}
	}
	if len(cars) != 300 {
		t.Errorf("the orders are for %d vehicles, want all 300", len(cars))
	}
	if lanes[telematics.AccessLane] < orders*7/10 || lanes[telematics.AttentionLane] == 0 || lanes[telematics.TopCaseLane] == 0 {
		t.Errorf("lanes: %v", lanes)
	}
	if toMany < orders/200 || toMany > orders/50 {
		t.Errorf("%d of %d orders are bulk commands", toMany, orders)
	}
	if withKey < orders*3/4 || withKey == orders || len(keys) != withKey {
		t.Errorf("%d of %d orders have a key, %d of them a unique one", withKey, orders, len(keys))
	}
}

var mixed = makeup{v1: 240, ovms: 30, teltonika: 30}

const someCommand = "0b6e5a4c-8f1d-4a7e-9c3b-2d1e0f9a8b7c"

// answered sends one request to a service with a handler.
func answered(t *testing.T, o order, handler http.HandlerFunc) []audit.Call {
	t.Helper()
	service := httptest.NewServer(handler)
	t.Cleanup(service.Close)
	r := &round{public: []string{service.URL}}
	return r.call(context.Background(), o, "a-request", 0, 5*time.Second)
}

func TestCall_RecordsTheAnswer(t *testing.T) {
	c := answered(t, order{car: 4, action: telematics.Lock, key: "k", prefer: "wait=3"}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/admin/vehicles/4/control/lock" || r.Header.Get("Idempotency-Key") != "k" ||
			r.Header.Get("Prefer") != "wait=3" || r.Header.Get("X-Request-ID") != "a-request" {
			t.Errorf("request for %s with the header %v", r.URL.Path, r.Header)
		}
		w.Header().Set("Idempotency-Replayed", "true")
		fmt.Fprintf(w, `{"data":{"id":%q,"outcome":"executed"}}`, someCommand)
	})[0]
	if c.Status != 200 || c.Outcome != telematics.Executed || c.Command.String() != someCommand || !c.Replayed || c.Vehicle != 4 ||
		c.Key != "k" {
		t.Errorf("call %+v, want an executed, replayed command", c)
	}
	c = answered(t, order{car: 4, action: telematics.Lock}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprintf(w, `{"data":null,"error":{"code":"command_timeout","outcome":"unknown","command_id":%q}}`, someCommand)
	})[0]
	if c.Status != 504 || c.Code != telematics.CommandTimeout || c.Outcome != telematics.MayHave || c.Command.String() != someCommand {
		t.Errorf("call %+v, want a timeout that may have executed", c)
	}
}

func TestCall_TruncatedResponseIsNone(t *testing.T) {
	c := answered(t, order{car: 4, action: telematics.Lock}, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":{"outcome":"exec`)
	})[0]
	if c.Status != 0 || c.Outcome != "" || c.End.Before(c.Start) {
		t.Errorf("call %+v, want no status and no outcome", c)
	}
}

func TestCall_BulkCommandIsACallForEachVehicle(t *testing.T) {
	calls := answered(t, order{car: 4, more: []int{5, 6}, action: telematics.Lock, key: "k"}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"data":{"id":"7f3c2a10-5b7e-4d0e-9d64-3f0f0c1f9a11","items":[
			{"vehicle_id":4,"command":{"id":%q,"outcome":null},"error":null},
			{"vehicle_id":5,"command":null,"error":{"code":"vehicle_offline","outcome":"not_executed","command_id":null}}]}}`, someCommand)
	})
	if len(calls) != 3 {
		t.Fatalf("%d calls, want 3", len(calls))
	}
	if c := calls[0]; c.Vehicle != 4 || c.Status != 202 || c.Command.String() != someCommand || c.Outcome != telematics.Undecided {
		t.Errorf("call %+v, want an undecided command", c)
	}
	if c := calls[1]; c.Vehicle != 5 || c.Code != telematics.VehicleOffline || c.Outcome != telematics.NotExecuted || c.Key != "k" {
		t.Errorf("call %+v, want it offline, not executed", c)
	}
	if c := calls[2]; c.Vehicle != 6 || c.Status != 202 || c.Command != telematics.NoCommand || c.Outcome != "" {
		t.Errorf("call %+v, want no command", c)
	}
}
