package request

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// The contract is checked before a handler runs, so path and query parameters are valid here. The
// gate reads some of them before that: one that is not valid is then zero.

// PathInteger returns a parameter of the path. Zero and negative numbers name nothing that exists.
func (c *Call) PathInteger(name string) int64 {
	n, _ := contract.ParseInteger(c.Param(name))
	return n
}

// Param returns a parameter of the path as text, in which a slash may be escaped.
func (c *Call) Param(name string) string {
	if c.Request().URL.RawPath == "" { // the path has no such characters
		return c.Context.Param(name)
	}
	text, _ := url.PathUnescape(c.Context.Param(name)) // the server has refused other escapes
	return text
}

// VehicleID returns the vehicle that the path names.
func (c *Call) VehicleID() telematics.VehicleID {
	return telematics.VehicleID(c.PathInteger("vehicle"))
}

// BookingID returns the booking that the path names.
func (c *Call) BookingID() rental.BookingID { return rental.BookingID(c.PathInteger("booking")) }

// QueryInteger returns an integer of the query, zero where it is absent.
func (c *Call) QueryInteger(name string) int64 {
	n, _ := contract.ParseInteger(c.QueryParam(name))
	return n
}

// QueryTime returns a time of the query, zero where it is absent.
func (c *Call) QueryTime(name string) time.Time {
	t, _ := contract.ParseTime(c.QueryParam(name))
	return t
}

// NamedAgency returns the agency of the query, else the actor's; zero: all.
func (c *Call) NamedAgency() telematics.AgencyID {
	return cmp.Or(telematics.AgencyID(c.QueryInteger("agency_id")), c.Actor.Agency)
}

// QueryAgency returns NamedAgency to select by. Instead of one that the actor may not see it
// returns telematics.NoAgency, so that nothing is found.
func (c *Call) QueryAgency() telematics.AgencyID {
	if agency := c.NamedAgency(); c.Actor.Sees(agency) {
		return agency
	}
	return telematics.NoAgency
}

// WantsRefresh reports whether a request wants the unit to report first. The contract accepts no
// other spelling of true.
func (c *Call) WantsRefresh() bool {
	return c.Request().Method != http.MethodHead && c.QueryParam("refresh") == "true"
}

// Page is the requested part of a list.
type Page struct {
	list     string // the name of the list; a cursor fits no other
	limit    int
	before   int64
	beforeID telematics.CommandID // for lists whose name ends with ByID
	metres   int64                // for lists whose name ends with ByDistance, before that id
}

// PageMeta has the cursor of the next page.
type PageMeta struct {
	NextCursor *string `json:"next_cursor"` // null at the end
}

// clientMeta returns the agency of the app and, for a list, the cursor of the next page.
func clientMeta(c *Call, page []PageMeta) any {
	agency := agencyMeta{ID: int64(c.Actor.Agency), Code: c.agencyCode}
	if len(page) == 0 {
		return agency
	}
	return struct {
		agencyMeta
		PageMeta
	}{agency, page[0]}
}

type agencyMeta struct {
	ID   int64  `json:"agency_id"`
	Code string `json:"agency_code"`
}

// Page returns the part of a list that the query names.
func (c *Call) Page(list string) Page {
	p := Page{list: list, limit: int(min(cmp.Or(c.QueryInteger("limit"), defaultLimit), maxLimit))}
	_ = p.setCursor(c.QueryParam("cursor"))
	return p
}

const badCursor = "must be the next_cursor of this list; leave it out to start at the newest"

// ByID is the suffix of the names of lists whose positions are UUIDs.
const ByID = "_by_id"

// ByDistance is the suffix of the names of lists that are ordered by a distance, then an id.
const ByDistance = "_by_distance"

// checkCursor adds an error for a cursor that does not belong to the list.
func checkCursor(c *Call, list string, wrong *contract.FieldErrors) {
	if text := c.QueryParam("cursor"); text != "" && !(&Page{list: list}).setCursor(text) {
		wrong.AddIfValid("cursor", badCursor)
	}
}

// Query requests one item more than the page has, which shows whether there is a next page.
func (p *Page) Query() telematics.Page {
	return telematics.Page{Limit: p.limit + 1, Before: p.before}
}

// QueryByID is Query for a list whose positions are UUIDs.
func (p *Page) QueryByID() (limit int, before telematics.CommandID) { return p.limit + 1, p.beforeID }

// QueryByDistance is Query for a list that is ordered by a distance.
func (p *Page) QueryByDistance() (limit int, metres, id int64) {
	return p.limit + 1, p.metres, p.before
}

// cursor returns the cursor of a position. It is opaque to callers, so that the meaning of
// positions can change.
func (p *Page) cursor(position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.list + ":" + position))
}

// position returns the position in a cursor, or false if it does not belong to the list.
func (p *Page) position(cursor string) (string, bool) {
	plain, err := base64.RawURLEncoding.DecodeString(cursor)
	position := strings.TrimPrefix(string(plain), p.list+":")
	return position, err == nil && p.cursor(position) == cursor
}

// setCursor starts the page at a cursor. It returns false if that does not belong to the list.
func (p *Page) setCursor(cursor string) (ok bool) {
	plain, ok := p.position(cursor)
	if !ok {
		return false
	}
	if strings.HasSuffix(p.list, ByID) {
		id, err := contract.ParseUUID(plain)
		p.beforeID = id
		return err == nil && id.String() == plain
	}
	if strings.HasSuffix(p.list, ByDistance) {
		metres, id, _ := strings.Cut(plain, ".")
		var near, known bool
		p.metres, near = parsePosition(metres)
		p.before, known = parsePosition(id)
		return near && known
	}
	p.before, ok = parsePosition(plain)
	return ok && p.before > 0
}

// parsePosition parses a number that is not negative, in the one form in which it is written.
func parsePosition(text string) (int64, bool) {
	n, ok := contract.ParseInteger(text)
	return n, ok && n >= 0
}

// Cut returns the items of the page, and the cursor of the next one.
func Cut[T any](p Page, items []T, position func(T) int64) ([]T, PageMeta) {
	return CutAt(p, items, func(item T) string { return strconv.FormatInt(position(item), 10) })
}

// CutAt is Cut for a list whose positions are text.
func CutAt[T any](p Page, items []T, position func(T) string) ([]T, PageMeta) {
	if len(items) <= p.limit {
		return items, PageMeta{}
	}
	items = items[:p.limit]
	return items, p.NextAt(position(items[p.limit-1]))
}

// NextAt returns the cursor of the page after a position.
func (p Page) NextAt(position string) PageMeta {
	next := p.cursor(position)
	return PageMeta{NextCursor: &next}
}

// The contract has checked the values of the body.

// Text returns a string of the body, empty where it is absent.
func (c *Call) Text(name string) string {
	text, _ := c.Values[name].(string)
	return text
}

// Time returns a time of the body, zero where it is absent.
func (c *Call) Time(name string) time.Time {
	t, _ := contract.ParseTime(c.Text(name))
	return t
}

// WholeNumber returns an integer of the body, which may be written as 42.0; zero: there is none, or
// it has more than 64 bits.
func (c *Call) WholeNumber(name string) int64 { return WholeNumber(c.Values[name]) }

// WholeNumber is Call.WholeNumber for a value of the body.
func WholeNumber(v any) int64 {
	number, _ := v.(json.Number)
	if n, err := number.Int64(); err == nil {
		return n
	}
	f, err := number.Float64()
	if err != nil || math.Abs(f) >= maxExact {
		return 0
	}
	return int64(f)
}

// maxExact is the bound below which no two integers are read as one float64.
const maxExact = 1 << 53
