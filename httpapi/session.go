package httpapi

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/resource"
	"motorpool/httpapi/signin"
	"motorpool/telematics"
)

// sessions answers the requests of browsers for signing in and out. These paths are not part of the
// API: people's browsers open them.
type sessions struct {
	signIn *signin.SignIn
	tokens *auth.Tokens
	audit  *audit
}

// identify returns the identity in a request's access token, or in that of its session.
func (s *server) identify(ctx context.Context, r *http.Request) (auth.Identity, error) {
	header := r.Header
	if s.SignIn != nil {
		authorization, err := s.SignIn.Authorization(r.WithContext(ctx))
		if err != nil {
			return auth.Identity{}, err
		}
		if authorization != "" {
			header = http.Header{echo.HeaderAuthorization: {authorization}}
		}
	}
	return s.Tokens.Authenticate(ctx, header)
}

// begin answers GET /auth/sign-in.
func (s sessions) begin(c *call) error {
	page, cookie, err := s.signIn.Begin(c.ctx())
	if err != nil {
		return s.refuse(c, err)
	}
	c.SetCookie(cookie)
	return c.Redirect(http.StatusFound, page)
}

// finish answers GET /auth/callback.
func (s sessions) finish(c *call) error {
	id, cookies, err := s.signIn.Finish(c.request(), c.RealIP())
	return s.startConsole(c, id, cookies, err)
}

// redeem answers GET /auth/once.
func (s sessions) redeem(c *call) error {
	id, cookies, err := s.signIn.Redeem(c.ctx(), c.QueryParam("code"))
	return s.startConsole(c, id, cookies, err)
}

// startConsole opens the console to a person who has signed in, once that is recorded [LAW-9].
func (s sessions) startConsole(c *call, id auth.Identity, cookies []*http.Cookie, err error) error {
	c.actor = id.Actor
	if err == nil {
		entry := c.entry(telematics.SessionBegin, 0)
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
	return s.page(c, http.StatusOK, signInPage{Message: "You are signed in as " + id.Actor.Subject + ".", Link: "../console/", Label: "Open the console", Follow: true})
}

// end answers POST /auth/sign-out.
func (s sessions) end(c *call) error {
	authorization, page, cookies, err := s.signIn.End(c.request())
	if err != nil {
		return err
	}
	for _, cookie := range cookies {
		c.SetCookie(cookie)
	}
	if authorization != "" {
		id, err := s.tokens.Authenticate(c.ctx(), http.Header{echo.HeaderAuthorization: {authorization}})
		if err == nil {
			c.actor = id.Actor
			entry := c.entry(telematics.SessionEnd, 0)
			entry.Outcome = telematics.Executed
			s.audit.recordLater(c.ctx(), entry)
		}
	}
	return c.answer("You are signed out.", struct {
		IssuerPage *string `json:"issuer_page"` // where the browser ends the issuer's session
	}{resource.OrNull(page)})
}

// streets answers GET /console/map.pmtiles with parts of the file of streets, only to
// administrators: other callers could keep the service busy with sending gigabytes. 204: there is
// no file. With the parameter v, the content must have that entity tag: browsers then cache it, and
// parts of two files do not mix.
func (s *server) streets(c *call) error {
	token, err := s.identify(c.ctx(), c.Request())
	if err != nil {
		challenge(c, err)
		return err
	}
	connections.MarkAuthenticated(c.ctx(), token.Actor)
	if c.actor = token.Actor; c.actor.Role != telematics.Admin {
		return wrongRole(telematics.Admin)
	}
	if s.Streets == nil {
		return c.NoContent(http.StatusNoContent)
	}
	content, etag, err := s.Streets.Open()
	if err != nil {
		return &telematics.Error{Code: serviceUnavailable, Retryable: true, RetryAfter: retryUnavailable, Cause: err,
			Message: "The service cannot use its file of streets (--map). Its log says why."}
	}
	defer func() { _ = content.Close() }() // was only read
	caching := "private, no-cache"
	if version := c.QueryParam("v"); version != "" {
		if etag != `"`+version+`"` {
			return &telematics.Error{Code: notFound, Message: "The file of streets was replaced."}
		}
		caching = "private, max-age=31536000, immutable"
	}
	c.setHeader(echo.HeaderContentType, "application/vnd.pmtiles")
	c.setHeader(echo.HeaderCacheControl, caching)
	c.setHeader("ETag", etag)
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, content)
	return nil
}

type signInPage struct {
	Message, Link, Label string
	Follow               bool
}

var signInTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
{{if .Follow}}<meta http-equiv="refresh" content="0;url={{.Link}}">
{{end}}<title>Motorpool</title>
<h1>Motorpool</h1>
<p>{{.Message}}</p>
<p><a href="{{.Link}}">{{.Label}}</a></p>
</html>
`))

// refuse answers a browser with a page instead of an envelope.
func (s sessions) refuse(c *call, err error) error {
	c.failure = asError(err)
	status, ok := statuses[c.failure.Code]
	if !ok {
		status = http.StatusInternalServerError
	}
	return s.page(c, status, signInPage{Message: c.failure.Message, Link: "sign-in", Label: "Sign in"})
}

func (s sessions) page(c *call, status int, p signInPage) error {
	var body bytes.Buffer
	if err := signInTemplate.Execute(&body, p); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'", "Referrer-Policy": "no-referrer", echo.HeaderCacheControl: "no-store",
	} {
		c.setHeader(name, value)
	}
	return c.HTMLBlob(status, body.Bytes())
}

// meBody is who makes the request.
type meBody struct {
	Subject   string      `json:"subject"`
	Level     string      `json:"level"`
	AgencyID  *int64      `json:"agency_id"` // null: all agencies
	Scopes    auth.Scopes `json:"scopes"`
	ExpiresAt string      `json:"expires_at"`
}

// me answers GET /admin/me.
func me(c *call) error {
	return c.answer("You are "+c.actor.Subject+".", meBody{
		Subject: c.actor.Subject, Level: c.level.String(), AgencyID: resource.OrNull(int64(c.actor.Agency)),
		Scopes: append(auth.Scopes{}, c.scopes...), ExpiresAt: resource.Timestamp(c.tokenUntil),
	})
}
