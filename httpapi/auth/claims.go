package auth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lestrrat-go/jwx/v3/jwt"

	"motorpool/telematics"
)

// Claims sets which claims of an access token hold the role, the agency and the scopes, and the
// names of the roles. Role, Agency and Scope are paths, see ParseClaimPath.
type Claims struct {
	Role   string // Defaults to "role".
	Agency string // Defaults to "agency_id".
	Scope  string // Defaults to "scope".
	// The values of the role that mean telematics.Admin, with the level Administrator, Operator or
	// Viewer. Default to "admin", "operator" and "viewer".
	Admin, Operator, Viewer string
	// The value of the role that means telematics.Client. Defaults to "client".
	Client string
}

func (c Claims) withDefaults() Claims {
	return Claims{
		Role: cmp.Or(c.Role, "role"), Agency: cmp.Or(c.Agency, "agency_id"), Scope: cmp.Or(c.Scope, "scope"),
		Admin:    cmp.Or(c.Admin, string(telematics.Admin)),
		Operator: cmp.Or(c.Operator, Operator.String()), Viewer: cmp.Or(c.Viewer, Viewer.String()),
		Client: cmp.Or(c.Client, string(telematics.Client)),
	}
}

// Level is what an actor may do under /api/v1/admin. Each level includes those before it.
type Level int

const (
	Viewer        Level = iota + 1 // reads
	Operator                       // commands vehicles, and changes bookings
	Administrator                  // halts commands, moves money, changes vehicles and agency keys
)

func (l Level) String() string {
	return [...]string{"none", "viewer", "operator", "administrator"}[l]
}

// ParseClaimPath splits the path of a claim into the names of nested members: "realm_access.roles"
// has two. A dot within a name is written \. and a name that begins with https:// or http://, as
// namespaced claims do, is one name whatever it contains. Its error is about an empty name.
func ParseClaimPath(path string) ([]string, error) {
	if strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://") {
		return []string{path}, nil
	}
	var names []string
	var name strings.Builder
	for rest := path; rest != ""; {
		switch {
		case strings.HasPrefix(rest, `\.`):
			name.WriteByte('.')
			rest = rest[2:]
			continue
		case rest[0] == '.':
			names = append(names, name.String())
			name.Reset()
		default:
			name.WriteByte(rest[0])
		}
		rest = rest[1:]
	}
	names = append(names, name.String())
	if slices.Contains(names, "") {
		return nil, fmt.Errorf("%q is not the path of a claim, such as realm_access.roles", path)
	}
	return names, nil
}

// claim returns the value at a path, and whether the token has it.
func claim(token jwt.Token, path string) (any, bool) {
	names, err := ParseClaimPath(path)
	if err != nil || !token.Has(names[0]) {
		return nil, false
	}
	var value any
	if token.Get(names[0], &value) != nil {
		return nil, true // null: the token has the claim, and no value
	}
	for _, name := range names[1:] {
		members, _ := value.(map[string]any)
		member, has := members[name]
		if !has {
			return nil, false
		}
		value = member
	}
	return value, true
}

// texts returns a claim that is a text, or an array of texts, as an array.
func texts(value any) ([]string, bool) {
	switch value := value.(type) {
	case string:
		return []string{value}, true
	case []string:
		return value, true
	case []any:
		list := make([]string, len(value))
		for i, element := range value {
			text, ok := element.(string)
			if !ok {
				return nil, false
			}
			list[i] = text
		}
		return list, true
	}
	return nil, false
}

// role returns the role of a token, and an administrator's level; empty if it names none of the
// configured roles. No token has the role telematics.System.
func (c Claims) role(token jwt.Token) (telematics.Role, Level, *telematics.Error) {
	value, has := claim(token, c.Role)
	if !has {
		return "", 0, nil
	}
	roles, ok := texts(value)
	if !ok {
		return "", 0, badToken(fmt.Sprintf("The access token's %s is neither a string nor an array of strings.", c.Role), nil)
	}
	var level Level
	var admin string
	for i, name := range []string{c.Viewer, c.Operator, c.Admin} {
		if slices.Contains(roles, name) {
			level, admin = Level(i+1), name
		}
	}
	client := slices.Contains(roles, c.Client)
	switch {
	case admin != "" && client:
		return "", 0, badToken(
			fmt.Sprintf("The access token's %s names both %s and %s; it must name one of them.", c.Role, admin, c.Client),
			nil,
		)
	case admin != "":
		return telematics.Admin, level, nil
	case client:
		return telematics.Client, 0, nil
	}
	return "", 0, nil
}

// agency returns the agency of a token; zero: it has no such claim. The claim may be a number, its
// decimal digits as text (some issuers have no number claims), or an array of exactly one of them.
// Anything else is refused, including zero and null, since it must not count as "no agency".
func (c Claims) agency(token jwt.Token) (telematics.AgencyID, *telematics.Error) {
	value, has := claim(token, c.Agency)
	if !has {
		return 0, nil
	}
	if list, ok := value.([]any); ok && len(list) == 1 {
		value = list[0]
	}
	var number float64
	switch value := value.(type) {
	case float64:
		number = value
	case string:
		n, err := strconv.ParseInt(value, 10, 64)
		if err == nil && strconv.FormatInt(n, 10) == value {
			number = float64(n)
		}
	}
	const exact = 1 << 53 // above it, a float64 may stand for several integers
	if number < 1 || number >= exact || number != math.Trunc(number) {
		return 0, badToken(fmt.Sprintf("The access token's %s is not a positive integer.", c.Agency), nil)
	}
	return telematics.AgencyID(number), nil
}

// Scopes grant what the role alone does not.
const (
	ScopeAllAgencies = "all_agencies" // an administrator of every agency
	ScopeHalt        = "halt"         // halt commands, and lift halts
	ScopeAgencyKeys  = "agency_keys"  // the keys that agencies' apps sign requests with
)

// AllScopes lists them.
var AllScopes = []string{ScopeAllAgencies, ScopeHalt, ScopeAgencyKeys}

// Scopes are those of a token.
type Scopes []string

// Has reports whether the token has a scope.
func (s Scopes) Has(scope string) bool { return slices.Contains(s, scope) }

// scopes returns the scopes, each one separated by spaces (RFC 6749, section 3.3) or an element of
// an array.
func (c Claims) scopes(token jwt.Token) (Scopes, *telematics.Error) {
	value, has := claim(token, c.Scope)
	if !has {
		return nil, nil
	}
	list, ok := texts(value)
	if !ok {
		return nil, badToken(fmt.Sprintf("The access token's %s is neither a string nor an array of strings.", c.Scope), nil)
	}
	return strings.Fields(strings.Join(list, " ")), nil
}
