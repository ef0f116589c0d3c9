package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const stream = "retry: 3000\nid: 1-0\n\n" +
	"id: 2-0\nevent: presence\ndata: {\"vehicle_id\":1,\"at\":\"2026-01-02T10:00:00.000Z\"}\n\n" +
	"id: 3-0\nevent: status\ndata: {\"at\":\"2026-01-02T10:00:03.250Z\",\"telemetry\":{},\"vehicle_id\":42}\n\n" +
	": ping\nid: 3-7\n\n" +
	"id: 4-0\nevent: reset\ndata: {\"vehicle_id\":null,\"at\":\"2026-01-02T10:00:04.000Z\",\"reason\":\"events_missing\"}\n\n" +
	"id: 5-0\nevent: status\ndata: {\"vehicle_id\":42,\"at\":\"2026-01-02T10:00:05.000Z\"}\n\n" +
	"event: end\ndata: {\"vehicle_id\":null,\"at\":\"2026-01-02T10:00:06.000Z\",\"reason\":\"stopping\"}\n\n"

func TestAStreamIsReadWhereverItIsCutIntoPieces(t *testing.T) {
	for size := 1; size < len(stream); size++ {
		var events, times []string
		s := scanner{
			sample: 1, late: func(at time.Time) { times = append(times, at.Format(timeForm)) },
			each: func(kind, id string) { events = append(events, kind+" "+id) },
		}
		for piece := range slices.Chunk([]byte(stream), size) {
			s.take(piece)
		}
		if got, want := strings.Join(events, ","), "presence 2-0,status 3-0,reset 4-0,status 5-0,end 5-0"; got != want {
			t.Fatalf("in pieces of %d: %s, want %s", size, got, want)
		}
		if want := []string{"2026-01-02T10:00:03.250Z", "2026-01-02T10:00:05.000Z"}; !slices.Equal(times, want) {
			t.Fatalf("in pieces of %d: times %v", size, times)
		}
		if s.seen.Events != 2 || s.seen.Resets != 1 || !strings.Contains(s.seen.End, "stopping") {
			t.Fatalf("in pieces of %d: %+v", size, s.seen)
		}
	}
}

func TestTheOrderOfEventsShowsInTheirSum(t *testing.T) {
	sum := func(ids ...int) uint64 {
		var s scanner
		for _, id := range ids {
			s.take(fmt.Appendf(nil, "id: %d-0\nevent: status\ndata: {}\n\n", id))
		}
		return s.seen.Order
	}
	whole := sum(1, 2, 3)
	for name, other := range map[string]uint64{"one missing": sum(1, 3), "swapped": sum(2, 1, 3), "one twice": sum(1, 2, 2, 3)} {
		if other == whole {
			t.Errorf("%s: not seen", name)
		}
	}
	if sum(1, 2, 3) != whole {
		t.Error("the same events have two sums")
	}
}
