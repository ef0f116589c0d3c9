package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"motorpool/telematics"
)

// TokensConfig sets which access tokens are accepted. Issuer, Audience and Keys are required.
type TokensConfig struct {
	Issuer   string // iss
	Audience string // one of aud
	Keys     *Keys
	// Types are the accepted values of the header parameter typ, case-insensitive; AbsentType
	// accepts a token without typ. Defaults to at+jwt and JWT.
	Types []string
	// Claims maps the claims of the issuer. Defaults to the names in docs/tokens.md.
	Claims Claims
	// Leeway is the clock error that exp and nbf allow. Defaults to 60 s.
	Leeway time.Duration
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Tokens verifies access tokens: JWT signed with RS256, ES256 or EdDSA. It caches the verified
// ones: a caller sends the same token with every request. Safe for concurrent use.
type Tokens struct {
	TokensConfig
	mu       sync.RWMutex
	verified map[digest]Identity // guarded by mu
}

// digest replaces a token in the cache, so that a memory dump of it contains no tokens.
type digest [sha256.Size]byte

// Identity is the content of a valid token.
type Identity struct {
	Actor  telematics.Actor
	Level  Level // of an administrator
	Scopes Scopes
	Until  time.Time // from then on the token is refused: its expiry plus the leeway

	from time.Time // from then on it is accepted: nbf minus the leeway
	keys *keySet   // which verified it
}

// NewTokens returns a verifier.
func NewTokens(config TokensConfig) *Tokens {
	config.Leeway = cmp.Or(config.Leeway, defaultLeeway)
	if len(config.Types) == 0 {
		config.Types = []string{"at+jwt", "JWT"}
	}
	config.Claims = config.Claims.withDefaults()
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Tokens{TokensConfig: config, verified: map[digest]Identity{}}
}

func (t *Tokens) identify(ctx context.Context, token string) (Identity, error) {
	key := digest(sha256.Sum256([]byte(token)))
	if id, ok := t.cached(key); ok {
		return id, nil
	}
	keys := t.Keys.current.Load()
	id, err := t.verify(ctx, token)
	if err != nil {
		return Identity{}, err
	}
	id.keys = keys // if the keys changed meanwhile, the old set: the token is verified again
	t.cache(key, id)
	return id, nil
}

func (t *Tokens) cached(key digest) (Identity, bool) {
	t.mu.RLock()
	id, ok := t.verified[key]
	t.mu.RUnlock()
	now := t.Now()
	return id, ok && id.keys == t.Keys.current.Load() && now.Before(id.Until) && !now.Before(id.from)
}

func (t *Tokens) cache(key digest, id Identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.verified) >= maxVerified {
		clear(t.verified) // simpler than finding the oldest
	}
	t.verified[key] = id
}

var algorithms = map[string]jwa.SignatureAlgorithm{
	"RS256": jwa.RS256(), "ES256": jwa.ES256(), "EdDSA": jwa.EdDSA(),
}

func (t *Tokens) verify(ctx context.Context, token string) (Identity, error) {
	message, err := jws.Parse([]byte(token), jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 {
		return Identity{}, badToken("The access token is not a JWT.", nil)
	}
	header := message.Signatures()[0].ProtectedHeaders()
	named, _ := header.Algorithm()
	alg, ok := algorithms[named.String()]
	if !ok {
		return Identity{}, badToken("The access token must be signed with RS256, ES256 or EdDSA.", nil)
	}
	if err := t.checkType(header); err != nil {
		return Identity{}, err
	}
	// RFC 7515 §4.1.11: none is understood here.
	if critical, _ := header.Critical(); len(critical) > 0 {
		return Identity{}, badToken("The access token has critical header parameters that are not known here.", nil)
	}
	keyID, _ := header.KeyID()
	key, err := t.Keys.find(ctx, keyID, alg)
	if errors.Is(err, errNoKeys) {
		return Identity{}, err
	}
	if err != nil {
		return Identity{}, badToken("The access token is signed with a key that is not known here.", err)
	}
	parsed, err := jwt.Parse([]byte(token), jwt.WithKey(alg, key), jwt.WithRequiredClaim(jwt.ExpirationKey),
		jwt.WithIssuer(t.Issuer), jwt.WithAudience(t.Audience),
		jwt.WithAcceptableSkew(t.Leeway), jwt.WithClock(jwt.ClockFunc(t.Now)))
	if err != nil {
		return Identity{}, badToken(describeRefusal(err), nil)
	}
	return t.readClaims(parsed)
}

// AbsentType accepts tokens without typ, as one of TokensConfig.Types.
const AbsentType = "absent"

// checkType refuses tokens that the issuer signed for another purpose, such as logout tokens (RFC
// 8725, section 3.11).
func (t *Tokens) checkType(header jws.Headers) error {
	named, has := header.Type()
	if !has {
		named = AbsentType
	}
	plain := strings.TrimPrefix(strings.ToLower(named), "application/") // RFC 7515 §4.1.9
	for _, accepted := range t.Types {
		if strings.EqualFold(accepted, plain) && has == (accepted != AbsentType) {
			return nil
		}
	}
	if !has {
		return badToken("The access token has no typ; it must be one of "+strings.Join(t.Types, ", ")+".", nil)
	}
	return badToken(
		fmt.Sprintf("The token is of type %.64q, not an access token; typ must be one of %s.", named, strings.Join(t.Types, ", ")),
		nil,
	)
}

func describeRefusal(err error) string {
	switch {
	case errors.Is(err, jwt.TokenExpiredError()):
		return "The access token has expired."
	case errors.Is(err, jwt.TokenNotYetValidError()), errors.Is(err, jwt.InvalidIssuedAtError()):
		return "The access token is not valid yet."
	case errors.Is(err, jwt.InvalidIssuerError()):
		return "The access token is of another issuer."
	case errors.Is(err, jwt.InvalidAudienceError()):
		return "The access token is for another audience."
	default:
		return "The access token is not valid."
	}
}

// readClaims reads the claims that Motorpool needs.
func (t *Tokens) readClaims(token jwt.Token) (Identity, error) {
	var id Identity
	expires, _ := token.Expiration()
	notBefore, _ := token.NotBefore()
	id.Until, id.from = expires.Add(t.Leeway), notBefore.Add(-t.Leeway)
	if id.Until.Year() > 9999 {
		return id, badToken("The access token's exp must be in seconds since 1970; this one never ends.", nil)
	}
	subject, _ := token.Subject()
	if subject == "" || len(subject) > maxSubject || !utf8.ValidString(subject) || strings.ContainsFunc(subject, unicode.IsControl) {
		return id, badToken(fmt.Sprintf("The access token must have sub, a string of 1 to %d bytes.", maxSubject), nil)
	}
	agency, errAgency := t.Claims.agency(token)
	role, level, errRole := t.Claims.role(token)
	granted, errScopes := t.Claims.scopes(token)
	if err := cmp.Or(errAgency, errRole, errScopes); err != nil {
		return id, err
	}
	switch {
	case role == telematics.Client && agency == 0:
		return id, badToken(fmt.Sprintf("The access token of a client must have %s.", t.Claims.Agency), nil)
	// A misspelt claim for the agency must not give access to all agencies.
	case role == telematics.Admin && agency == 0 && !granted.Has(ScopeAllAgencies):
		return id, badToken(
			fmt.Sprintf("The access token of an administrator must have %s, the id of its agency; or, to see all agencies, %s in %s.",
				t.Claims.Agency, ScopeAllAgencies, t.Claims.Scope),
			nil,
		)
	}
	id.Actor, id.Level, id.Scopes = telematics.Actor{Subject: subject, Role: role, Agency: agency}, level, granted
	return id, nil
}
