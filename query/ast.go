package query

import (
	"strconv"
	"strings"

	"mayfly/json/jsontext"
)

// Query is a query that [Parse] has accepted, with its parameters bound. It is immutable and safe for
// concurrent use.
type Query struct {
	items    []item // nil for *
	value    bool   // SELECT VALUE
	distinct bool
	where    node // nil selects all
	groupBy  []*pathRef
	grouped  bool // GROUP BY or an aggregate
	orderBy  []orderItem
	offset   int64
	limit    int64 // -1 without
	hash     uint64

	from      bool       // FROM is there
	conjuncts []conjunct // of where
	never     bool       // where selects none

	paths      []path // read from documents, each once
	needs      Needs
	aggregates []*aggregate
}

// item is an item of SELECT.
type item struct {
	name string
	expr node
}

// orderItem is an item of ORDER BY.
type orderItem struct {
	expr node
	desc bool
}

// Needs says what a query reads of a document besides its text.
type Needs struct {
	ID, Etag, Ends bool // Ends: _expiresat or _ttlleft
	Time, TTL      bool // _ts, _ttl
}

// path is the way to a value in a document.
type path []step

// step is the name of a member, or the index of an element.
type step struct {
	name  string
	index int // -1 for a name
}

// key returns a text that is the same for equal paths only.
func (p path) key() string {
	var out strings.Builder
	for _, s := range p {
		if s.index >= 0 {
			out.WriteString("[" + strconv.Itoa(s.index) + "]")
		} else {
			out.WriteString(strconv.Quote(s.name))
		}
	}
	return out.String()
}

// String returns the path as a query without FROM writes it.
func (p path) String() string {
	var out strings.Builder
	for i, s := range p {
		switch {
		case s.index >= 0:
			out.WriteString("[" + strconv.Itoa(s.index) + "]")
		case wordSize(s.name) < len(s.name) || s.name == "":
			out.Write(append(jsontext.AppendString([]byte("["), s.name), ']'))
		default:
			if i > 0 {
				out.WriteByte('.')
			}
			out.WriteString(s.name)
		}
	}
	return out.String()
}

// node is an expression.
type node interface {
	eval(e *Evaluator) Value
}

type (
	// literal is a constant.
	literal struct{ value Value }

	// pathRef is a value of the document, of a pseudo member or of a group.
	pathRef struct {
		path   path // empty for the whole document
		at     int  // its byte in the query
		pseudo pseudo
		slot   int  // its number among the paths of the query
		group  int  // the path of GROUP BY that it begins with; -1 without
		rest   path // what follows the path of GROUP BY or the pseudo member
	}

	// memberOf is a member or element of a computed value.
	memberOf struct {
		base node
		step step
	}

	// logical is AND or OR of at least two terms.
	logical struct {
		or    bool
		terms []node
		texts []string // of terms
	}

	// not is NOT.
	not struct{ term node }

	// negative is unary minus.
	negative struct{ term node }

	// comparison is =, !=, <, <=, > or >=.
	comparison struct {
		op          operator
		left, right node
	}

	// arithmetic is +, -, *, / or %.
	arithmetic struct {
		op          byte
		left, right node
	}

	// concat is ||.
	concat struct{ left, right node }

	// in is IN.
	in struct {
		term   node
		values []node
		set    map[string]bool // the canonical values, if all are literals
		kinds  uint            // a bit for each kind in set
	}

	// between is BETWEEN.
	between struct{ term, low, high node }

	// likeExpr is LIKE.
	likeExpr struct {
		term, pattern node
		escape        string       // one character, or ""
		compiled      *likePattern // of a literal
	}

	// call is a function with its arguments.
	call struct {
		function *function
		args     []node
		prepared *prepared // nil unless constants are read once
	}

	// arrayOf and objectOf are literals with expressions in them.
	arrayOf  struct{ elements []node }
	objectOf struct {
		names  []string
		values []node
	}

	// aggregate is COUNT, SUM, AVG, MIN or MAX; index is its number among the aggregates of the query.
	aggregate struct {
		name  string
		arg   node
		index int
	}
)

// operator is a comparison.
type operator uint8

const (
	equal operator = iota
	notEqual
	less
	lessOrEqual
	greater
	greaterOrEqual
)

// pseudo is a member that the server adds at the root.
type pseudo uint8

const (
	stored pseudo = iota // no pseudo member
	pseudoID
	pseudoEtag
	pseudoTS
	pseudoTTL
	pseudoExpiresAt
	pseudoTTLLeft
)

// pseudoMembers are the names of pseudo members. They hide stored members of the same name.
var pseudoMembers = map[string]pseudo{
	"_id": pseudoID, "_etag": pseudoEtag, "_ts": pseudoTS, "_ttl": pseudoTTL, "_expiresat": pseudoExpiresAt, "_ttlleft": pseudoTTLLeft,
}
