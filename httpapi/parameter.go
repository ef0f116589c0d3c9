package httpapi

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// The contract is checked before a handler runs, so path and query parameters are valid here. The
// gate reads some of them before that: one that is not valid is then zero.

// pathInteger returns a parameter of the path. Zero and negative numbers name nothing that exists.
func (c *call) pathInteger(name string) int64 {
	n, _ := contract.ParseInteger(c.Param(name))
	return n
}

func (c *call) vehicleID() telematics.VehicleID {
	return telematics.VehicleID(c.pathInteger("vehicle"))
}
func (c *call) bookingID() rental.BookingID { return rental.BookingID(c.pathInteger("booking")) }

// queryInteger returns an integer of the query, zero where it is absent.
func (c *call) queryInteger(name string) int64 {
	n, _ := contract.ParseInteger(c.QueryParam(name))
	return n
}

// queryTime returns a time of the query, zero where it is absent.
func (c *call) queryTime(name string) time.Time {
	t, _ := contract.ParseTime(c.QueryParam(name))
	return t
}

// queryAgency returns the agency of the query, else the actor's; zero: all. It returns false if the
// actor may not see that agency.
func (c *call) queryAgency() (telematics.AgencyID, bool) {
	own := c.actor.Agency
	agency := cmp.Or(telematics.AgencyID(c.queryInteger("agency_id")), own)
	return agency, own == 0 || own == agency
}

// page is the requested part of a list.
type page struct {
	list   string // the name of the list; a cursor fits no other
	limit  int
	before int64
}

type pageMeta struct {
	NextCursor *string `json:"next_cursor"` // null at the end
}

// clientMeta returns the agency of the app and, for a list, the cursor of the next page.
func clientMeta(c *call, page []pageMeta) any {
	agency := agencyMeta{ID: int64(c.actor.Agency), Code: c.agencyCode}
	if len(page) == 0 {
		return agency
	}
	return struct {
		agencyMeta
		pageMeta
	}{agency, page[0]}
}

type agencyMeta struct {
	ID   int64  `json:"agency_id"`
	Code string `json:"agency_code"`
}

func (c *call) page(list string) page {
	p := page{list: list, limit: int(min(cmp.Or(c.queryInteger("limit"), defaultLimit), maxLimit))}
	p.before, _ = p.parseCursor(c.QueryParam("cursor"))
	return p
}

const badCursor = "must be the next_cursor of this list; leave it out to start at the newest"

// byID is the suffix of the names of lists whose positions are UUIDs.
const byID = "_by_id"

// checkCursor adds an error for a cursor that does not belong to the list.
func checkCursor(c *call, list string, wrong *contract.FieldErrors) {
	if text := c.QueryParam("cursor"); text != "" {
		_, ok := (page{list: list}).parseCursor(text)
		if strings.HasSuffix(list, byID) {
			_, ok = (page{list: list}).parseIDCursor(text)
		}
		if !ok {
			wrong.AddIfValid("cursor", badCursor)
		}
	}
}

// query requests one item more than the page has, which shows whether there is a next page.
func (p page) query() telematics.Page {
	return telematics.Page{Limit: p.limit + 1, Before: p.before}
}

// cursor returns the cursor of a position. It is opaque to callers, so that the meaning of
// positions can change.
func (p page) cursor(position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.list + ":" + position))
}

// position returns the position in a cursor, or false if it does not belong to the list.
func (p page) position(cursor string) (string, bool) {
	plain, err := base64.RawURLEncoding.DecodeString(cursor)
	position := strings.TrimPrefix(string(plain), p.list+":")
	return position, err == nil && p.cursor(position) == cursor
}

func (p page) parseCursor(text string) (int64, bool) {
	plain, ok := p.position(text)
	position, err := strconv.ParseInt(plain, 10, 64)
	return position, ok && err == nil && position > 0 && strconv.FormatInt(position, 10) == plain
}

func (p page) parseIDCursor(text string) (telematics.CommandID, bool) {
	plain, ok := p.position(text)
	id, err := contract.ParseUUID(plain)
	return id, ok && err == nil && id.String() == plain
}

// cut returns the items of the page, and the cursor of the next one.
func cut[T any](p page, items []T, position func(T) int64) ([]T, pageMeta) {
	return cutAt(p, items, func(item T) string { return strconv.FormatInt(position(item), 10) })
}

func cutAt[T any](p page, items []T, position func(T) string) ([]T, pageMeta) {
	if len(items) <= p.limit {
		return items, pageMeta{}
	}
	items = items[:p.limit]
	next := p.cursor(position(items[p.limit-1]))
	return items, pageMeta{NextCursor: &next}
}

// The contract has checked the values of the body.

func (c *call) text(name string) string {
	text, _ := c.values[name].(string)
	return text
}

func (c *call) time(name string) time.Time {
	t, _ := contract.ParseTime(c.text(name))
	return t
}

// wholeNumber returns an integer of the body, which may be written as 42.0; zero: there is none, or
// it has more than 64 bits.
func (c *call) wholeNumber(name string) int64 { return wholeNumber(c.values[name]) }

func wholeNumber(v any) int64 {
	number, _ := v.(json.Number)
	if n, err := number.Int64(); err == nil {
		return n
	}
	f, err := number.Float64()
	if err != nil || math.Abs(f) > maxExact {
		return 0
	}
	return int64(f)
}

// maxExact is the bound up to which a float64 represents every integer exactly.
const maxExact = 1 << 53

// amount returns the amount of the body in a currency, exactly as it was written; zero: there is
// none.
func (c *call) amount(currency rental.Currency) (rental.Minor, error) {
	number, ok := c.values["amount"].(json.Number)
	if !ok {
		return 0, nil
	}
	m, err := currency.Parse(number.String())
	if err != nil {
		return 0, contract.Invalid("amount", err.Error())
	}
	return m, nil
}

// checkAmount checks an amount as far as that is possible without its currency.
func checkAmount(c *call, wrong *contract.FieldErrors) {
	number, ok := c.values["amount"].(json.Number)
	if !ok {
		return
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(number.String()), "e")
	if strings.HasPrefix(mantissa, "-") || !strings.ContainsAny(mantissa, "123456789") {
		wrong.AddIfValid("amount", "must be more than 0")
	}
}

// checkText adds an error for text that is blank, or has a NUL, which Postgres refuses.
func checkText(c *call, name string, wrong *contract.FieldErrors) {
	text := c.text(name)
	if strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) {
		wrong.AddIfValid(name, "must be a string that is not blank, without NUL")
	}
}
