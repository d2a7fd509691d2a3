package scripts

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"

	"mayfly/commands/scripts/bytecode"
	"mayfly/commands/scripts/luatable"

	lua "github.com/yuin/gopher-lua"
)

// The types below have the layouts of private types of gopher-lua v1.1.2, which go.mod pins. The library
// offers no bound on memory and no place to put one; with its layouts this package runs the library's
// bytecode in a loop of its own. init compares each layout with the library's and refuses to start otherwise.

type frame struct {
	Idx        int
	Fn         *lua.LFunction
	Parent     *frame
	Pc         int
	Base       int
	LocalBase  int
	ReturnBase int
	NArgs      int
	NRet       int
	TailCall   int
}

// frameStack has the methods of the library's callFrameStack, all of them: calls go by their order.
type frameStack interface {
	Push(v frame)
	Pop() *frame
	Last() *frame
	SetSp(sp int)
	Sp() int
	At(sp int) *frame
	IsFull() bool
	IsEmpty() bool
	FreeAll()
}

type registry struct {
	array   []lua.LValue
	top     int
	growBy  int
	maxSize int
	//lint:ignore U1000 the library uses it
	alloc unsafe.Pointer
	//lint:ignore U1000 the library uses it
	handler interface{ registryOverflow() }
}

type upvalue struct {
	next   *upvalue
	reg    *registry
	index  int
	value  lua.LValue
	closed bool
}

type state struct {
	G       *lua.Global
	Parent  *lua.LState
	Env     *lua.LTable
	Panic   func(*lua.LState)
	Dead    bool
	Options lua.Options

	stop         int32
	reg          *registry
	stack        frameStack
	alloc        unsafe.Pointer
	currentFrame *frame
	wrapped      bool
	uvcache      *upvalue
	hasErrorFunc bool
	mainLoop     func(*lua.LState, *frame)
	ctx          context.Context
	ctxCancelFn  context.CancelFunc
}

type table = luatable.Layout

// jumpTable is the library's function for each opcode. The loop of this package leaves rare ones to it.
//
//go:linkname jumpTable github.com/yuin/gopher-lua.jumpTable
var jumpTable [bytecode.Nop + 1]func(*lua.LState, uint32, *frame) int

func stateOf(L *lua.LState) *state { return (*state)(unsafe.Pointer(L)) }
func tableOf(t *lua.LTable) *table { return luatable.Of(t) }

func init() {
	ls, d, u := reflect.TypeFor[lua.LState](), reflect.TypeFor[lua.Debug](), reflect.TypeFor[lua.Upvalue]()
	member := func(t reflect.Type, name string) reflect.Type {
		f, ok := t.FieldByName(name)
		if !ok {
			panic(fmt.Sprintf("scripts: %v has no member %s: this package needs gopher-lua v1.1.2", t, name))
		}
		return f.Type
	}
	luatable.Same(ls, reflect.TypeFor[state]())
	luatable.Same(u, reflect.TypeFor[upvalue]())
	luatable.Same(member(ls, "reg").Elem(), reflect.TypeFor[registry]())
	luatable.Same(member(ls, "currentFrame").Elem(), reflect.TypeFor[frame]())
	if member(d, "frame") != member(ls, "currentFrame") {
		panic("scripts: lua.Debug is not that of gopher-lua v1.1.2")
	}
	theirs, ours := member(ls, "stack"), reflect.TypeFor[frameStack]()
	for i := range max(theirs.NumMethod(), ours.NumMethod()) {
		if i >= theirs.NumMethod() || i >= ours.NumMethod() || theirs.Method(i).Name != ours.Method(i).Name {
			panic("scripts: the methods of callFrameStack are not those of gopher-lua v1.1.2")
		}
	}
	if jumpTable[bytecode.Nop] == nil {
		panic("scripts: the opcodes are not those of gopher-lua v1.1.2")
	}
}

// grow makes room for n registers. It raises Lua's error if that is above the registry's bound.
func (r *registry) grow(L *lua.LState, n int) {
	if n <= len(r.array) {
		return
	}
	if n > r.maxSize {
		raise(L, "stack overflow")
	}
	array := make([]lua.LValue, min(r.maxSize, max(n, 2*len(r.array))))
	copy(array, r.array[:r.top])
	r.array = array
	r.growBy = len(array)
}

// set sets a register of the running function.
func (r *registry) set(i int, v lua.LValue) {
	r.array[i] = v
	if i >= r.top {
		r.top = i + 1
	}
}

// setTop moves the top; registers above it become nil of Go.
func (r *registry) setTop(top int) {
	for i := r.top; i < top; i++ {
		r.array[i] = lua.LNil
	}
	if top < r.top {
		clear(r.array[top:r.top])
	}
	r.top = top
}

// closeUpvalues gives closures their own copies of the registers from index on.
func (s *state) closeUpvalues(index int) {
	var prev *upvalue
	for u := s.uvcache; u != nil; u = u.next {
		if u.index >= index {
			if prev != nil {
				prev.next = nil
			} else {
				s.uvcache = nil
			}
			u.value, u.closed = u.reg.array[u.index], true
		}
		prev = u
	}
}
