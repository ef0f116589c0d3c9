package rental_test

import (
	"slices"
	"testing"
	"time"

	"motorpool/rental"
)

func TestWithout_IsBetweenTheTakenOnes(t *testing.T) {
	at := func(h int) time.Time { return start.Add(time.Duration(h) * time.Hour) }
	spans := func(hours ...int) []rental.Span {
		list := []rental.Span{}
		for i := 0; i < len(hours); i += 2 {
			list = append(list, rental.Span{From: at(hours[i]), To: at(hours[i+1])})
		}
		return list
	}
	for what, c := range map[string]struct{ taken, free []rental.Span }{
		"nothing is taken":      {spans(), spans(0, 10)},
		"in the middle":         {spans(2, 3, 5, 6), spans(0, 2, 3, 5, 6, 10)},
		"from before the start": {spans(-5, 2), spans(2, 10)},
		"until after the end":   {spans(8, 12), spans(0, 8)},
		"all of it":             {spans(-1, 11), spans()},
		"exactly all of it":     {spans(0, 10), spans()},
		"one after another":     {spans(2, 3, 3, 4), spans(0, 2, 4, 10)},
		"one in another":        {spans(2, 8, 3, 4), spans(0, 2, 8, 10)},
		"beyond the end":        {spans(2, 3, 12, 13), spans(0, 2, 3, 10)},
		"before the start":      {spans(-3, -2), spans(0, 10)},
	} {
		if free := (rental.Span{From: at(0), To: at(10)}).Without(c.taken); !slices.Equal(free, c.free) {
			t.Errorf("%s: free %v, want %v", what, free, c.free)
		}
	}
}
