package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"motorpool/console"
	"motorpool/httpapi"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/signin"
	"motorpool/store/operators"
	"motorpool/store/redis"
)

// signIn returns nil where browsers cannot sign in.
func (s *service) signIn(limits *redis.Limits, tokens *auth.Tokens) (*signin.SignIn, error) {
	c := s.config
	if c.ConsoleURL == "" {
		return nil, nil
	}
	address, err := url.Parse(c.ConsoleURL)
	if err != nil {
		return nil, fmt.Errorf("--console-url: %w", err)
	}
	return signin.New(signin.Config{
		Store: redis.NewSessions(s.cache), Tokens: tokens, URL: address, Lifetime: c.ConsoleSession, Log: s.log,
		Metrics: s.registry, Operators: operators.Store{DB: s.postgres}, Limiter: limits,
		Issuer: signin.IssuerConfig{
			URL: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: string(c.OIDCClientSecret),
			Scopes: list(c.OIDCScopes), Audience: c.OIDCAudience,
		},
	})
}

// console returns nil where browsers cannot sign in: its pages would show nothing.
func (c Config) console() (httpapi.Pages, error) {
	if c.ConsoleURL == "" {
		return nil, nil
	}
	return console.New(httpapi.ConsolePath, c.MapStyle)
}

func (c Config) checkMapStyle() error {
	if c.MapStyle == "" {
		return nil
	}
	if c.ConsoleURL == "" {
		return errors.New("--map-style: of no use without --console-url")
	}
	if _, err := console.OriginOf(c.MapStyle); err != nil {
		return fmt.Errorf("--map-style: %w", err)
	}
	return nil
}

func (c Config) checkSignIn() error {
	if c.ConsoleURL == "" {
		if c.OIDCIssuer != "" {
			return errors.New(
				"--console-url: needed with --oidc-issuer: where browsers reach the service, such as https://fleet.example.com",
			)
		}
		return nil
	}
	var problems []error
	u, err := url.Parse(c.ConsoleURL)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !isLocal(u)) {
		problems = append(
			problems,
			errors.New("--console-url: want https://host[/path], as browsers reach the service; http:// only on this machine"),
		)
	}
	if c.OIDCIssuer != "" {
		problems = append(problems, checkKeySource("oidc-issuer", c.OIDCIssuer), notEmpty("oidc-client-id", c.OIDCClientID))
	}
	return errors.Join(append(problems, checkRange("console-session", c.ConsoleSession, 0, 7*24*time.Hour))...)
}

func isLocal(u *url.URL) bool {
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}
