"""Opens the gateway's page in a browser, trades on it by mouse and by keyboard, and breaks its
connection.

Usage: check.py PROGRAM DIRECTORY BROWSER [--axe FILE] [--screenshots FOLDER]
"""

import argparse
import atexit
import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
from decimal import Decimal

from browser import Browser

ANY = "127.0.0.1:0"
# Less than any few levels of the made-up market have.
SIZE = "0.00005"
LADDER = "document.querySelectorAll('#ladder tr.{}')[{}]"
STATE = "(await import('/page/main.js')).state"
TOLD = "document.getElementById('said').textContent"


def awaited(script):
    return f"(async () => {script})()"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def serve(options, port):
    """Starts a server. Returns its process, and the API key of a user."""
    places = ["--trade-listen", ANY, "--admin-listen", ANY, "--http-listen", ANY]
    command = [options.program, "exchange", "serve", options.directory, "--demo", *places,
               "--gateway", f"127.0.0.1:{port}"]
    with open(options.directory + ".log", "a", encoding="utf-8") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    atexit.register(server.kill)
    lines = []
    while sum("secret " in line for line in lines) < 2:
        line = server.stdout.readline()
        if not line:
            raise SystemExit(f"the server has ended: {options.directory}.log")
        lines.append(line)
    assert any(f"http://127.0.0.1:{port}/" in line for line in lines), lines
    words = " ".join(lines).split()
    return server, words[words.index("apiKey") + 1], words[words.index("secret") + 1]


def check_modules(browser):
    """The rule of the book, exact sums, and the signature, by the page's own modules."""
    exact = browser.run(awaited("""{
      const { units, text, short, floor, ceil } = await import('/page/decimal.js');
      const { sign } = await import('/page/connection.js');
      const big = '123456789012345678.12345678';
      const one = units(big, 8);
      return [text(one, 8) === big, text(one * 3n, 8), units('0.001', 2), units('1e5', 2),
        units('', 2), String(units('.5', 2)), short('1.2300'), short('5.00000', 2),
        String(floor(-7n, 5n)), String(ceil(7n, 5n)),
        await sign({ timestamp: 1, apiKey: 'k' }, 'secret')];
    }"""))
    assert exact[:10] == [True, "370370367037037034.37037034", None, None, None, "50", "1.23",
                          "5.00", "-10", "10"], exact
    payload = b"apiKey=k&timestamp=1"
    assert exact[10] == hmac.new(b"secret", payload, hashlib.sha256).hexdigest()
    book = browser.run(awaited("""{
      const { Book } = await import('/page/book.js');
      const event = (U, u, b = [], a = []) => ({ U, u, b, a });
      const snapshots = [
        { lastUpdateId: 3, bids: [['1', '1']], asks: [] },
        { lastUpdateId: 7, bids: [['1', '9'], ['2', '1']], asks: [['5', '1']] },
        { lastUpdateId: 20, bids: [['4', '4']], asks: [] },
      ];
      const asked = [];
      let given = 0;
      const load = () => new Promise((give) => asked.push(() => give(snapshots[given++])));
      const give = async () => {
        asked.shift()();
        await new Promise((resume) => setTimeout(resume));
      };
      const seen = [];
      const book = new Book(load, () => seen.push(book.last));
      book.take(event(5, 6, [['1', '2']]));
      book.take(event(7, 8, [['1', '3'], ['2', '0.00000000']]));
      await give();
      seen.push('older than the first event');
      book.take(event(9, 9, [], [['6', '1']]));
      await give();
      seen.push(JSON.stringify([[...book.bids], [...book.asks]]));
      book.take(event(8, 9, [['1', '77']]));
      book.take(event(11, 12));
      seen.push(book.last, book.gaps);
      await give();
      seen.push(JSON.stringify([...book.bids]));
      return seen;
    }"""))
    levels = '[[["1","3"]],[["5","1"],["6","1"]]]'
    assert book == ["older than the first event", 9, 9, levels, None, 1, 20, '[["4","4"]]'] or \
        book == ["older than the first event", 9, levels, None, 1, 20, '[["4","4"]]'], book


def check_book(browser):
    """The book on the page is that of REST at a common number."""
    same = awaited(f"""{{
      const state = {STATE};
      const response = await fetch('/api/v3/depth?symbol=BTCUSDT&limit=1000');
      const rest = await response.json();
      const until = performance.now() + 400;
      while ((state.book.last ?? 0) < rest.lastUpdateId && performance.now() < until) {{
        await new Promise((resume) => setTimeout(resume, 5));
      }}
      if (state.book.last !== rest.lastUpdateId) return null;
      const sorted = (side) => JSON.stringify([...side].sort());
      return [sorted(state.book.bids) === sorted(rest.bids)
        && sorted(state.book.asks) === sorted(rest.asks), rest.bids.length];
    }}""")
    found = browser.wait("a common number of the page's book and REST's", same)
    assert found[0] and found[1] > 5, found


def check_gap(browser):
    """Where an event is missing, the book begins again and is right again."""
    lose = "book.take = () => { delete book.take; }; return book.gaps;"
    assert browser.run(awaited(f"{{ const {{ book }} = {STATE}; {lose} }}")) == 0
    again = f"{{ const {{ book }} = {STATE}; return book.gaps === 1 && book.last > 0; }}"
    browser.wait("a book again", awaited(again))
    check_book(browser)


def check_groups(browser):
    """Levels come together by the step that is chosen."""
    group = "document.getElementById('group')"
    browser.run(f"{group}.value = {group}.options[4].value;"
                f" {group}.dispatchEvent(new Event('change'))")
    assert browser.run(f"{group}.selectedOptions[0].text") == "0.2"
    prices = "[...document.querySelectorAll('#ladder tbody tr')].flatMap((row) =>"
    prices += " row.cells[1]?.textContent || [])"
    browser.wait("prices in steps of 0.2", f"(() => {{ const all = {prices};"
                 " return all.length > 3 && all.every((one) => /^\\d+\\.[02468]0$/.test(one)); })()")
    browser.run(f"{group}.value = {group}.options[0].value;"
                f" {group}.dispatchEvent(new Event('change'))")


def check_symbol(browser):
    """The symbol is in the address, and another address has another book."""
    browser.run("location.hash = 'ETHUSDT'")
    other = awaited(f"{{ const s = {STATE}; return s.book.last > 0"
                    " && document.getElementById('symbol').value; }")
    browser.wait("the book of ETHUSDT", f"{other}.then((name) => name === 'ETHUSDT')")
    assert "(ETH)" in browser.run("document.querySelector('label[for=quantity]').textContent")
    browser.run("location.hash = 'BTCUSDT'")
    browser.wait("the book of BTCUSDT", f"{other}.then((name) => name === 'BTCUSDT')")


def log_on(browser, key, secret):
    """Logs on by the keyboard alone."""
    browser.key("k")
    browser.type(key)
    browser.key("Tab")
    browser.type(secret)
    browser.key("Enter")
    browser.wait("balances", "document.querySelectorAll('#balances tbody tr').length >= 2")
    stored = browser.run("JSON.stringify({ ...localStorage, ...sessionStorage })")
    assert secret not in stored, "the secret is kept, and nobody asked for that"


def fills(browser):
    return browser.run("document.querySelectorAll('#fills tr').length")


def trade_by_mouse(browser):
    """Clicks on a price far enough in the book to trade at once, and on the button."""
    before = fills(browser)
    browser.click(LADDER.format("sell", 7))
    price = browser.run("document.getElementById('price').value")
    assert float(price) > 0, price
    browser.click("document.getElementById('quantity')")
    browser.type(SIZE)
    worth = browser.run("document.getElementById('worth').textContent")
    expected = f"{Decimal(price) * Decimal(SIZE):f}".rstrip("0")
    assert worth == expected + " USDT", (price, worth)
    browser.click("document.getElementById('submit')")
    browser.wait("a fill", f"document.querySelectorAll('#fills tr').length > {before}")
    said = browser.wait("words about the fill", f"/illed|filled/.test({TOLD}) && {TOLD}")
    first = browser.run("document.querySelector('#fills tr').innerText")
    assert "▲ B" in first and "taker" in first, first
    return said


def trade_by_keyboard(browser):
    """Takes a price from the book by arrow keys, and sells by Enter in the form."""
    before = fills(browser)
    filled = f"document.querySelectorAll('#fills tr').length > {before}"
    # The market may leave the price behind on a busy machine: then the order rests, and another one
    # is placed.
    for _ in range(10):
        browser.run("document.activeElement.blur()")
        browser.key("o")
        for _ in range(6):
            browser.key("ArrowDown")
        browser.key("Enter")
        price = browser.run("document.getElementById('price').value")
        assert price, "Enter in the book fills in the price"
        browser.key("s")
        where = browser.run("document.activeElement.id")
        assert where == "price", where
        browser.key("Enter")
        browser.wait("an order", f"{filled} || document.querySelectorAll('#open tr').length > 0")
        if browser.run(filled):
            break
        browser.run("document.activeElement.blur()")
        browser.key("x")
        browser.key("Enter")
        browser.wait("no open order", "document.querySelectorAll('#open tr').length === 0")
    first = browser.run("document.querySelector('#fills tr').innerText")
    assert "▼ S" in first, first


def rest_and_cancel(browser):
    """Places an order that rests, sees it among the own ones and in the book, and cancels it."""
    browser.run("document.activeElement.blur()")
    browser.key("b")
    browser.run("document.getElementById('price').select()")
    browser.type("0.015")
    browser.key("Enter")
    refusal = ("/multiples of 0.01/.test(document.body.innerText)"
               " && document.getElementById('price').getAttribute('aria-invalid')")
    browser.wait("a refusal by the form", refusal)
    # It stays, whatever the connections say meanwhile: they are asked every few seconds.
    links = browser.run("document.getElementById('links').textContent")
    browser.wait("another round trip",
                 f"document.getElementById('links').textContent !== {json.dumps(links)}")
    assert browser.run(refusal), "the refusal is gone"
    browser.run("document.getElementById('price').select()")
    browser.type("0.01")
    browser.key("Enter")
    browser.wait("an open order", "document.querySelectorAll('#open tr').length === 1")
    browser.run("document.activeElement.blur()")
    browser.key("x")
    name = browser.run("document.activeElement.getAttribute('aria-label')")
    assert name.startswith(f"Cancel: buy {SIZE} at 0.01"), name
    browser.key("Enter")
    browser.wait("no open order", "document.querySelectorAll('#open tr').length === 0")
    assert browser.run(TOLD).startswith("Cancelled"), browser.run(TOLD)


def refused_order(browser):
    """What the server refuses is said with its words."""
    browser.run("document.getElementById('price').select()")
    browser.type("100")
    browser.run("document.getElementById('quantity').select()")
    browser.type("9999999")
    browser.key("Enter")
    failed = "document.getElementById('failed').textContent"
    browser.wait("the server's refusal", f"/insufficient balance.*-2010/.test({failed})")
    browser.run("document.getElementById('quantity').select()")
    browser.type(SIZE)


def take_pictures(browser, folder):
    """Waits until the drawings have something, and writes pictures for the documentation."""
    interval = "document.getElementById('interval')"
    browser.run(f"{interval}.value = '1s'; {interval}.dispatchEvent(new Event('change'))")
    browser.run("document.getElementById('span').value = '60'")
    browser.run("document.getElementById('price').select()")
    best = browser.run("document.querySelector('#ladder tr.buy:nth-last-child(8)').cells[1].innerText")
    browser.type(best)
    browser.key("Enter")
    browser.rest(60)
    browser.size(1280, 1060)
    browser.rest(2)
    browser.picture(folder + "/page-1280.png")
    browser.size(400, 1000)
    browser.rest(2)
    browser.picture(folder + "/page-400.png")
    browser.size(1280, 940)


def check_accessibility(browser, axe, where):
    """Runs axe's rules, all of them."""
    if not axe:
        return 0
    with open(axe, encoding="utf-8") as file:
        browser.run(file.read() + "; true")
    found = browser.run("""axe.run().then(({ violations, passes }) => [violations.map((one) =>
      `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html.slice(0, 120) + ' '
      + node.failureSummary).join(' | ')}`), passes.length])""")
    assert not found[0], where + "\n" + "\n".join(found[0])
    return found[1]


def break_connection(browser, options, server, port):
    """A server that is silent, then gone, then back."""
    banner = "document.getElementById('banner')"
    server.send_signal(signal.SIGSTOP)
    browser.wait("a banner", f"!{banner}.hidden && {banner}.innerText.includes('Stale')")
    assert browser.run("document.getElementById('submit').disabled")
    server.send_signal(signal.SIGCONT)
    browser.wait("no banner", f"{banner}.hidden")
    seen = len(browser.errors)
    for keys_are_kept in [True, False]:
        server.kill()
        server.wait()
        browser.wait("a banner", f"/connection was lost/.test({banner}.innerText)")
        if not keys_are_kept:
            os.remove(options.directory + "/api-keys.toml")
        server, _, _ = serve(options, port)
        browser.wait("a market again", awaited(
            f"{{ const s = {STATE}; return s.streams.state === 'live' && s.book?.last > 0; }}"))
        refused = "/Not logged on/.test(document.body.innerText)"
        if keys_are_kept:
            browser.wait("orders again", "!document.getElementById('submit').disabled")
            assert not browser.run(refused)
        else:
            browser.wait("a refused key", refused)
    browser.wait("no banner", f"{banner}.hidden")
    check_book(browser)
    lost = [error for error in browser.errors[seen:] if "ERR_CONNECTION_REFUSED" not in error]
    del browser.errors[seen:]
    browser.errors.extend(lost)
    return server


def check_checks(browser, base):
    """What the page must not do is seen where it does it."""
    browser.run("console.error('canary')")
    browser.pump(0.2)
    assert any("canary" in error for error in browser.errors)
    browser.call("Page.setBypassCSP", enabled=True)
    browser.call("Page.reload")
    browser.wait("the page", "document.querySelectorAll('#symbol option').length > 0")
    browser.run("fetch('http://127.0.0.2:9/').catch(() => true)")
    assert outside(browser, base) == ["http://127.0.0.2:9/"], outside(browser, base)


def outside(browser, base):
    own = (base + "/", base.replace("http", "ws") + "/")
    return [url for url in browser.requests if not url.startswith(own)]


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "directory", "browser"):
        parser.add_argument(name)
    for name in ("--axe", "--screenshots"):
        parser.add_argument(name)
    options = parser.parse_args()
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    server, key, secret = serve(options, port)
    browser = Browser(options.browser)
    browser.size(1280, 940)
    browser.scheme("dark")
    browser.call("Page.navigate", url=base + "/#BTCUSDT")
    live = awaited(f"{{ const s = {STATE}; return s.streams.state === 'live' && s.book?.last > 0"
                   " && s.instruments.moments.length > 1; }")
    browser.wait("a live page", f"document.readyState === 'complete' && {live}")
    check_modules(browser)
    check_symbol(browser)
    check_book(browser)
    check_groups(browser)
    log_on(browser, key, secret)
    print("by mouse:", trade_by_mouse(browser))
    trade_by_keyboard(browser)
    rest_and_cancel(browser)
    refused_order(browser)
    timed = f"{{ return {STATE}.instruments.moments.some((one) => one.tail && one.slowest); }}"
    browser.wait("figures of the stages", awaited(timed))
    passes = [check_accessibility(browser, options.axe, "1280 px, dark")]
    if options.screenshots:
        take_pictures(browser, options.screenshots)
    check_gap(browser)
    browser.scheme("light")
    passes.append(check_accessibility(browser, options.axe, "1280 px, light"))
    browser.size(400, 860)
    browser.wait("a narrow page", "document.documentElement.scrollWidth <= 400")
    passes.append(check_accessibility(browser, options.axe, "400 px, light"))
    browser.scheme("dark")
    browser.size(1280, 940)
    server = break_connection(browser, options, server, port)
    assert not browser.errors, browser.errors
    assert not outside(browser, base), outside(browser, base)
    check_checks(browser, base)
    server.terminate()
    server.wait()
    accessible = f"axe's rules that hold: {passes}" if options.axe else "without axe"
    print(f"the page trades, and comes back; {accessible}")


if __name__ == "__main__":
    main()
