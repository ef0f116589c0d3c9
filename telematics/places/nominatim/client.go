package nominatim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"motorpool/telematics"
)

const (
	maxBody    = 64 << 10 // bytes; an answer without details has about 1 KiB
	maxAddress = 1000     // bytes
	building   = "18"     // the API's zoom at which an address has a house number
	askWithin  = 10 * time.Second
	idleFor    = 30 * time.Second // until an unused connection is closed

	// blockedFor is the pause after 401 or 403 without Retry-After.
	blockedFor = time.Hour
)

// Config identifies the server and the client. URL is required.
type Config struct {
	// URL is the server's, without /reverse. Its query, such as a key, is part of each request.
	URL string
	// Contact is the e-mail address or URL of Motorpool's operator, for the server's operator.
	// Defaults to none.
	Contact string
	// Version is the program's. Defaults to "dev".
	Version string
	// Timeout bounds a request. Defaults to 10 s.
	Timeout time.Duration
}

// Client queries one server. It is safe for concurrent use.
type Client struct {
	reverse url.URL
	agent   string
	http    *http.Client
}

// New returns a client. It does no I/O. It fails for a URL or a contact that is not valid.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		// The URL is not in the message: it may hold a key.
		return nil, errors.New("want the geocoder's URL as https://host/…")
	}
	if !utf8.ValidString(config.Contact) || strings.ContainsFunc(config.Contact, unprintable) {
		return nil, errors.New("the geocoder's contact must be printable, without ( and )")
	}
	agent := "motorpool/" + cmp.Or(config.Version, "dev")
	if config.Contact != "" {
		agent += " (+" + config.Contact + ")"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.IdleConnTimeout = 1, idleFor
	return &Client{
		reverse: *base.JoinPath("reverse"), agent: agent,
		http: &http.Client{
			Transport: transport, Timeout: cmp.Or(config.Timeout, askWithin),
			// Positions are sent to the configured server only.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func unprintable(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsPrint(r) || r == '(' || r == ')' // these enclose it
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Address returns the address of a position, or "" if the server knows none. It blocks for
// Config.Timeout at most. An error is an *Unavailable; its text contains neither the position
// nor the URL of the server.
func (c *Client) Address(ctx context.Context, p telematics.Position) (string, error) {
	ask := c.reverse
	query := ask.Query()
	query.Set("format", "jsonv2")
	query.Set("lat", strconv.FormatFloat(p.Latitude, 'f', -1, 64))
	query.Set("lon", strconv.FormatFloat(p.Longitude, 'f', -1, 64))
	query.Set("zoom", building)
	query.Set("addressdetails", "0")
	ask.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, ask.String(), nil)
	if err != nil {
		return "", &Unavailable{Cause: withoutURL(err)}
	}
	request.Header.Set("User-Agent", c.agent)
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return "", &Unavailable{Cause: withoutURL(err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return "", &Unavailable{Status: response.StatusCode, Cause: withoutURL(err)}
	}
	return read(response, body)
}

// read returns the address in a response, or why there is none. "Unable to geocode" comes with
// 200 from Nominatim itself, and with 404 from other servers with its API.
func read(response *http.Response, body []byte) (string, error) {
	status := response.StatusCode
	var answer struct {
		DisplayName string          `json:"display_name"`
		Error       json.RawMessage `json:"error"`
	}
	err := json.Unmarshal(body, &answer)
	var said string
	_ = json.Unmarshal(answer.Error, &said) // a text; or an object, which is handled below
	switch {
	case len(body) > maxBody:
		return "", &Unavailable{Status: status, Cause: errors.New("the answer is too long")}
	case err == nil && strings.EqualFold(said, "Unable to geocode") && (status == http.StatusOK || status == http.StatusNotFound):
		return "", nil
	case status != http.StatusOK:
		return "", &Unavailable{Status: status, After: retryAfter(response)}
	case err != nil:
		return "", &Unavailable{Status: status, Cause: errors.New("the answer is not JSON as it should be")}
	case answer.Error != nil:
		return "", &Unavailable{Status: status, Cause: errors.New("the answer is an error")}
	}
	address := strings.TrimSpace(answer.DisplayName)
	if address == "" || len(address) > maxAddress || !utf8.ValidString(address) || strings.ContainsFunc(address, unicode.IsControl) {
		return "", &Unavailable{Status: status, Cause: errors.New("the answer holds no address")}
	}
	return address, nil
}

// retryAfter reads the Retry-After header (RFC 9110 §10.2.3): seconds, or a date.
func retryAfter(response *http.Response) time.Duration {
	said := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(said, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(said); err == nil {
		return max(0, time.Until(at))
	}
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return blockedFor
	}
	return 0
}

// withoutURL removes the URL from an error: it contains a vehicle's position, and maybe a key.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// Unavailable is the error of a request that the server did not answer, or refused.
type Unavailable struct {
	Status int           // of HTTP; 0: there was no answer
	After  time.Duration // how long to send no request; 0: the server set no time
	Cause  error         // nil: the status is the reason
}

func (u *Unavailable) Error() string {
	switch {
	case u.Status == 0:
		return "geocoder did not answer: " + u.Cause.Error()
	case u.Cause != nil:
		return fmt.Sprintf("geocoder answered %d: %v", u.Status, u.Cause)
	}
	return fmt.Sprintf("geocoder answered %d", u.Status)
}

func (u *Unavailable) Unwrap() error { return u.Cause }

// RetryAfter returns how long to send no request, as the server demands; 0: no time set.
func (u *Unavailable) RetryAfter() time.Duration { return u.After }
