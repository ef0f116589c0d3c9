package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shown is a field of the interface, with its path. Every field is always present.
type shown struct {
	path string
	kind string // the type in the words of the interface
	null bool   // whether it may be null
}

// bookingFields are the fields of section 2.3.
var bookingFields = []shown{
	{"id", "integer", false},
	{"reference", "string", false},
	{"status", "string", false},
	{
		"start_date", "datetime", false,
	},
	{"end_date", "datetime", false},
	{"actual_start", "datetime", true},
	{"actual_end", "datetime", true},
	{
		"vehicle.id", "integer", false,
	},
	{"vehicle.plate_number", "string", false},
	{"vehicle.brand", "string", false},
	{"vehicle.model", "string", false},
	{
		"vehicle.year", "integer", false,
	},
	{"vehicle.color", "string", false},
	{"vehicle.category", "string", false},
	{"vehicle.image", "URL", false},
	{"vehicle.features", "strings", false},
	{"pickup_station.id", "integer", false},
	{"pickup_station.name", "string", false},
	{"pickup_station.address", "string", false},
	{"pickup_station.latitude", "number", false},
	{"pickup_station.longitude", "number", false},
	{"dropoff_station.id", "integer", false},
	{"dropoff_station.name", "string", false},
	{"dropoff_station.address", "string", false},
	{"dropoff_station.latitude", "number", false},
	{"dropoff_station.longitude", "number", false},
	{"pricing.duration_hours", "number", false},
	{"pricing.hourly_rate", "number", false},
	{"pricing.subtotal", "number", false},
	{
		"pricing.tax", "number", false,
	},
	{"pricing.deposit", "number", false},
	{"pricing.total", "number", false},
	{"pricing.currency", "string", false},
	{"payment.method", "string", false},
	{"payment.status", "string", false},
	{"payment.paid_at", "datetime", true},
	// These fields were added so that clients see what they pay. The booking has no fee.
	{
		"pricing.rental_total", "number", false,
	},
	{"pricing.lines", "objects", false},
	{"pricing.tariff", "string", true},
	{"payment.charged", "number", false},
	{"payment.refunded", "number", false},
	{"payment.held", "number", false},
	{"payment.final", "boolean", false},
	{"fees", "strings", false},
	{"can_cancel", "boolean", false},
	{"can_extend", "boolean", false},
	{"created_at", "datetime", false},
	// These say how far a rental is that its client does alone.
	{"reserved_until", "datetime", true},
	{"paused", "boolean", false},
	{"transition", "string", true},
}

// methodFields are the fields of section 2.4; chosenFields are those of the response that sets a
// default.
var (
	methodFields = []shown{
		{"id", "integer", false},
		{"type", "string", false},
		{"brand", "string", false},
		{"last_four", "string", false},
		{
			"exp_month", "integer", false,
		},
		{"exp_year", "integer", false},
		{"is_default", "boolean", false},
		{"created_at", "datetime", false},
	}
	chosenFields = []shown{
		{
			"id", "integer", false,
		},
		{"type", "string", false},
		{"brand", "string", false},
		{"last_four", "string", false},
		{"is_default", "boolean", false},
	}
	metaFields = []shown{{"agency_id", "integer", false}, {"agency_code", "string", false}}
)

var wholeNumber = regexp.MustCompile(`^-?\d+$`)

// is reports whether a value has the type that the interface gives a field.
func (f shown) is(value any) bool {
	number, isNumber := value.(json.Number)
	text, isText := value.(string)
	switch f.kind {
	case "integer":
		return isNumber && wholeNumber.MatchString(number.String())
	case "number":
		_, err := strconv.ParseFloat(number.String(), 64)
		return isNumber && err == nil
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "datetime":
		return isText && envelopeTime.MatchString(text)
	case "URL":
		u, err := url.Parse(text)
		return isText && err == nil && u.Host != ""
	case "strings":
		list, ok := value.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok })
	case "objects":
		list, ok := value.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(map[string]any); return !ok })
	default:
		return isText && text != ""
	}
}

// flat flattens objects into the paths of their values.
func flat(prefix string, value any, into map[string]any) {
	object, ok := value.(map[string]any)
	if !ok {
		into[strings.TrimPrefix(prefix, ".")] = value
		return
	}
	for name, value := range object {
		flat(prefix+"."+name, value, into)
	}
}

// shows compares the object at a path with the fields of the interface, which must be all of its
// fields, and logs them.
func (a answer) shows(path string, fields []shown) {
	a.Helper()
	got := map[string]any{}
	flat("", a.at(path), got)
	var table strings.Builder
	for _, f := range fields {
		value, there := got[f.path]
		verdict := "ok"
		if !there || !f.is(value) && (!f.null || value != nil) {
			verdict = "WRONG"
			a.Errorf("%s: %s.%s is %v, want %s", a.asked, path, f.path, value, f.kind)
		}
		kind := f.kind
		if f.null {
			kind += " or null"
		}
		fmt.Fprintf(&table, "\n  %-28s %-18s %-5s %v", f.path, kind, verdict, value)
		delete(got, f.path)
	}
	for name, value := range got {
		a.Errorf("%s: %s.%s is %v, but the interface has no such field", a.asked, path, name, value)
	}
	a.Logf("%s: %d, %s:%s", a.asked, a.status, path, table.String())
}

func TestInterface_ResponsesToClients(t *testing.T) {
	t.Parallel()
	r := startStack(t, 3).rent()
	i := r.open()
	c := r.newCustomer()

	added := c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_visa"}`).wants(201, "").has(
		"data.type", `"card"`, "data.brand", `"visa"`, "data.last_four", `"4242"`, "data.exp_month", "12",
		"data.exp_year", "2034", "data.is_default", "true", "meta", `{"agency_code":"ONE","agency_id":1}`,
	)
	added.shows("data", methodFields)
	added.shows("meta", metaFields)
	amex := c.add(i, "pm_card_amex", true)
	list := c.get(i, "/payment-methods").
		wants(200, "").
		has("data.0.is_default", "true", "data.0.brand", `"amex"`, "data.1.is_default", "false")
	if len(list.list("data")) != 2 || list.number("data.0.id") != amex {
		r.Errorf("listed as %s, want two cards", list.text)
	}
	list.shows("data.0", methodFields)
	list.shows("data.1", methodFields)
	visa := added.number("data.id")
	c.post(i, fmt.Sprintf("/payment-methods/%d/default", visa), "").wants(200, "").has(
		"data.id", strconv.FormatInt(visa, 10), "data.is_default", "true").shows("data", chosenFields)
	c.remove(i, fmt.Sprintf("/payment-methods/%d", amex)).wants(200, "").has("data", "null", "meta.agency_code", `"ONE"`)

	soon := fromNow(time.Minute)
	booking := c.book(i, 1, soon, "")
	before := c.get(i, ownOf(booking)).wants(200, "").has(
		"data.status", `"upcoming"`, "data.actual_start", "null", "data.actual_end", "null", "data.payment.status",
		`"pending"`, "data.payment.paid_at", "null", "data.can_cancel", "true", "data.can_extend", "true",
		"data.pricing.duration_hours", "8", "data.pricing.hourly_rate", "15.00", "data.pricing.subtotal", "120.00",
		"data.pricing.tax", "12.00", "data.pricing.deposit", "200.00", "data.pricing.total", "332.00",
		"data.pricing.currency", `"EUR"`, "data.vehicle.features", `["bluetooth","isofix"]`,
		"data.vehicle.plate_number", `"M-OT 1"`, "data.pickup_station.name", `"Hauptbahnhof"`,
		"data.dropoff_station.name", `"Ostbahnhof"`, "data.pickup_station.latitude", "48.1402", "data.start_date",
		fmt.Sprintf("%q", soon.from.Format("2006-01-02T15:04:05.000Z")), "data.end_date",
		fmt.Sprintf("%q", soon.to.Format("2006-01-02T15:04:05.000Z")), "meta",
		`{"agency_code":"ONE","agency_id":1}`,
	)
	before.shows("data", bookingFields)
	if year := time.Now().UTC().Year(); before.word("data.reference") != fmt.Sprintf("BK-%d-00001", year) {
		r.Errorf("the first booking has the reference %s", before.word("data.reference"))
	}

	i.start(booking)
	paid := c.awaitPayment(i, booking, "paid").has("data.status", `"active"`, "data.payment.method", `"Visa •••• 4242"`,
		"data.can_cancel", "false", "data.can_extend", "true", "data.actual_end", "null")
	paid.shows("data", bookingFields)
	if paid.at("data.actual_start") == nil || paid.at("data.payment.paid_at") == nil {
		r.Errorf("a paid booking: %s", paid.text)
	}
	if accepted := paid.word("data.payment.paid_at"); accepted < paid.word("data.actual_start") {
		r.Errorf("the payment is dated %s, before the start", accepted)
	}
	page := c.get(i, "/bookings?status=active&limit=1").wants(200, "").has("meta.next_cursor", "null", "meta.agency_id", "1")
	page.shows("data.0", bookingFields)

	i.asAdmin(http.MethodPost, adminOf(booking)+"/end", "").wants(200, "")
	ended := c.get(i, ownOf(booking)).
		wants(200, "").
		has("data.status", `"completed"`, "data.can_cancel", "false", "data.can_extend", "false")
	ended.shows("data", bookingFields)
	if ended.at("data.actual_end") == nil {
		r.Errorf("an ended booking without actual_end: %s", ended.text)
	}
}
