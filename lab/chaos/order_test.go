package main

import (
	"reflect"
	"testing"

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
