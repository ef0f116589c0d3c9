package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/httpapi/signin"
	"motorpool/httpapi/signin/pages"
	"motorpool/operators"
	"motorpool/telematics"
)

// sessions answers the requests of browsers for signing in and out. These paths are not part of the
// API: people's browsers open them.
type sessions struct{ *server }

// identify returns the identity in a request's access token, or that of its session.
func (s *server) identify(ctx context.Context, r *http.Request) (auth.Identity, error) {
	if s.SignIn != nil {
		if id, has, err := s.SignIn.Identify(r.WithContext(ctx)); has || err != nil {
			return id, err
		}
	}
	return s.Tokens.Authenticate(ctx, r.Header)
}

func (s sessions) begin(c *request.Call) error {
	if s.SignIn.HasPasswords() {
		return s.askForPassword(c, "", nil)
	}
	issuer, cookie, err := s.SignIn.Begin(c.Ctx())
	if err != nil {
		return s.refuse(c, err)
	}
	c.SetCookie(cookie)
	return c.Redirect(http.StatusFound, issuer)
}

func (s sessions) finish(c *request.Call) error {
	id, cookies, err := s.SignIn.Finish(c.HTTPRequest(), c.RealIP())
	return s.startConsole(c, id, cookies, err)
}

func (s sessions) redeem(c *request.Call) error {
	id, cookies, err := s.SignIn.Redeem(c.Ctx(), c.QueryParam("code"))
	return s.startConsole(c, id, cookies, err)
}

// startConsole opens the console to a person who has signed in, once that is recorded [LAW-9].
func (s sessions) startConsole(c *request.Call, id auth.Identity, cookies []*http.Cookie, err error) error {
	c.Actor = id.Actor
	if err == nil {
		entry := c.Entry(telematics.SessionBegin, 0)
		entry.Outcome = telematics.Executed
		err = s.audit.recordDurably(c, entry)
	}
	if err != nil {
		return s.refuse(c, err)
	}
	for _, cookie := range cookies {
		c.SetCookie(cookie)
	}
	// A page instead of a redirect: browsers do not send the strict cookie in a navigation that
	// another site has started.
	return s.page(
		c, http.StatusOK,
		pages.Page{
			Message: "You are signed in as %s.", Words: id.Actor.Subject, Link: "../console/",
			Label: "Open the console", Follow: true,
		},
	)
}

// maxForm bounds the body of a form of the sign-in, in bytes: a code and two passwords in percent
// encoding. Half refuses the longest passwords.
const maxForm = 3*2*operators.MaxPassword + 1<<10

func (s sessions) enter(c *request.Call) error {
	form, err := readForm(c)
	if err != nil {
		return s.askForPassword(c, "", err)
	}
	id, cookies, err := s.SignIn.Enter(c.HTTPRequest(), c.RealIP(), form.Get("name"), form.Get("password"))
	if err != nil {
		return s.askForPassword(c, form.Get("name"), err)
	}
	return s.startConsole(c, id, cookies, nil)
}

// askForPassword answers with the form for a name and a password, and why the last ones were
// refused, with the name as it was typed.
func (s sessions) askForPassword(c *request.Call, name string, refusal error) error {
	p := pages.Page{Title: "Sign in", Action: "sign-in", Button: "Sign in", Hint: s.SignInHint, Fields: []pages.Field{
		{Name: "name", Label: "Name", Type: "text", Value: name, Complete: "username"},
		{Name: "password", Label: "Password", Type: "password", Complete: "current-password"},
	}}
	if refusal == nil {
		switch has, err := s.SignIn.HasOperators(c.Ctx()); {
		case err != nil:
			refusal = err
		case !has:
			p.Message = signin.NoOperators
		}
	}
	return s.refuseOn(c, p, refusal)
}

// choosePassword answers GET /auth/password, the address of a link. It uses nothing up: programs
// that preview links open them, too.
func (s sessions) choosePassword(c *request.Call) error {
	code := c.QueryParam("code")
	name, err := s.SignIn.LinkOwner(c.HTTPRequest(), c.RealIP(), code)
	if err != nil {
		return s.refuse(c, err)
	}
	return s.askForNewPassword(c, name, code, nil)
}

func (s sessions) setPassword(c *request.Call) error {
	form, err := readForm(c)
	if err != nil {
		return s.refuse(c, err)
	}
	id, cookies, err := s.SignIn.SetPassword(
		c.HTTPRequest(), c.RealIP(), form.Get("code"), form.Get("password"), form.Get("repeated"), c.Author(),
	)
	if err == nil {
		return s.startConsole(c, id, cookies, nil)
	}
	if !errors.Is(err, signin.ErrPassword) {
		return s.refuse(c, err)
	}
	return s.askForNewPassword(c, form.Get("name"), form.Get("code"), err)
}

func (s sessions) askForNewPassword(c *request.Call, name, code string, refusal error) error {
	return s.refuseOn(c, pages.Page{Title: "Choose your password", Action: "password", Button: "Save and sign in", Fields: []pages.Field{
		{Name: "code", Type: "hidden", Value: code},
		{Name: "name", Label: "Name", Type: "text", Value: name, Complete: "username", Fixed: true},
		{Name: "password", Label: "New password, 12 characters or more", Type: "password", Complete: "new-password"},
		{Name: "repeated", Label: "The same again", Type: "password", Complete: "new-password"},
	}}, refusal)
}

// readForm reads the body of a form.
func readForm(c *request.Call) (url.Values, error) {
	if err := c.ReadBody(maxForm); err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(c.Body))
	if err != nil {
		return nil, request.Malformed("The form could not be read.", err)
	}
	return form, nil
}

// refuseOn answers with a page that says why something was refused, if it was.
func (s sessions) refuseOn(c *request.Call, p pages.Page, err error) error {
	if err == nil {
		return s.page(c, http.StatusOK, p)
	}
	failure, status := c.Fail(err)
	p.Message = failure.Message
	if c.Request().Method == http.MethodGet && p.Action == "" && status == http.StatusServiceUnavailable {
		// The browser repeats it.
		c.SetHeader("Refresh", c.Response().Header().Get(echo.HeaderRetryAfter))
	}
	return s.page(c, status, p)
}

// refuse answers a browser with a page instead of an envelope.
func (s sessions) refuse(c *request.Call, err error) error {
	return s.refuseOn(c, pages.Page{Link: "sign-in", Label: "Sign in"}, err)
}

func (s sessions) page(c *request.Call, status int, shown pages.Page) error {
	headers, body, err := shown.Render(c.Request().Header.Get("Accept-Language"))
	if err != nil {
		return err
	}
	for name, value := range headers {
		c.SetHeader(name, value)
	}
	return c.HTMLBlob(status, body)
}

func (s sessions) end(c *request.Call) error {
	of, issuer, cookies, err := s.SignIn.End(c.HTTPRequest())
	if err != nil {
		return err
	}
	for _, cookie := range cookies {
		c.SetCookie(cookie)
	}
	if of.Actor.Subject != "" {
		c.Actor = of.Actor
		entry := c.Entry(telematics.SessionEnd, 0)
		entry.Outcome = telematics.Executed
		s.audit.RecordLater(c.Ctx(), entry)
	}
	return c.Answer("You are signed out.", struct {
		IssuerPage *string `json:"issuer_page"` // where the browser ends the issuer's session
	}{resource.OrNull(issuer)})
}

// meBody is who makes the request.
type meBody struct {
	Subject   string      `json:"subject"`
	Level     string      `json:"level"`
	AgencyID  *int64      `json:"agency_id"` // null: all agencies
	Scopes    auth.Scopes `json:"scopes"`
	ExpiresAt string      `json:"expires_at"`
}

func me(c *request.Call) error {
	return c.Answer("You are "+c.Actor.Subject+".", meBody{
		Subject: c.Actor.Subject, Level: c.Level.String(), AgencyID: resource.OrNull(int64(c.Actor.Agency)),
		Scopes: append(auth.Scopes{}, c.Scopes...), ExpiresAt: resource.Timestamp(c.TokenUntil),
	})
}
