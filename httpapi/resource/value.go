package resource

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// List returns the bodies of items; never nil, so that an empty list is encoded as [].
func List[T, B any](items []T, body func(T) B) []B {
	list := make([]B, len(items))
	for i, item := range items {
		list[i] = body(item)
	}
	return list
}

// Timestamp formats a time as ISO 8601 in UTC with milliseconds.
func Timestamp(t time.Time) string { return telematics.FormatTime(t) }

// TimestampOrNull returns the timestamp, or nil for the zero time.
func TimestampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(Timestamp(t))
}

// OrNull returns a pointer to the value, or nil for the zero value.
func OrNull[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}

// Money writes an amount as a JSON number, exactly.
func Money(c rental.Currency, m rental.Minor) json.Number { return json.Number(c.Format(m)) }

// hours writes a number of hundredths as a JSON number, exactly: 8, 7.5, 0.25.
func hours(h rental.Hundredths) json.Number {
	whole, rest := int64(h)/100, int64(h)%100
	if rest == 0 {
		return json.Number(strconv.FormatInt(whole, 10))
	}
	return json.Number(strconv.FormatInt(whole, 10) + "." + strings.TrimRight(strconv.FormatInt(100+rest, 10)[1:], "0"))
}
