"""flask-session: a session is stored, read, expired, destroyed."""

import datetime

from flask import Flask, session
from flask_session import Session

from common import connect, until

r = connect()
app = Flask(__name__)
app.config.update(SESSION_TYPE="redis", SESSION_REDIS=r, SECRET_KEY="secret", SESSION_USE_SIGNER=True)
Session(app)


@app.route("/")
def count():
    session["visits"] = session.get("visits", 0) + 1
    return str(session["visits"])


@app.route("/leave")
def leave():
    session.clear()
    return "left"


ann, bob = app.test_client(), app.test_client()
assert [ann.get("/").text, ann.get("/").text, bob.get("/").text] == ["1", "2", "1"]
keys = r.keys("session:*")
assert len(keys) == 2
assert r.ttl(keys[0]) > 30 * 86400
bob.get("/leave")
assert len(r.keys("session:*")) == 1
assert bob.get("/").text == "1"

app.permanent_session_lifetime = datetime.timedelta(seconds=1)
assert ann.get("/").text == "3"
until("the session expires", lambda: len(r.keys("session:*")) == 1)
assert ann.get("/").text == "1"
print("passed")
