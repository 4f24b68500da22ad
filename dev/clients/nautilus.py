"""Has nautilus_trader's ExecTester trade live, and compares its fills with the engine's.

Usage: nautilus.py PROGRAM DIRECTORY, by the Python that has nautilus_trader.
"""

import os
import sys
import threading
import time
from decimal import Decimal

from nautilus_trader.adapters.binance import (
    BINANCE, BinanceDataClientConfig, BinanceExecClientConfig, BinanceLiveDataClientFactory,
    BinanceLiveExecClientFactory)
from nautilus_trader.config import InstrumentProviderConfig, LoggingConfig, TradingNodeConfig
from nautilus_trader.live.node import TradingNode
from nautilus_trader.model.identifiers import InstrumentId, TraderId
from nautilus_trader.test_kit.strategies.tester_exec import ExecTester, ExecTesterConfig

from server import LOT, Server

PROGRAM, DIRECTORY = sys.argv[1:3]
USER, RUN_S = 7, 30


def main():
    """Runs the tester for a while."""
    os.makedirs(DIRECTORY)
    server = Server(PROGRAM, DIRECTORY + "/exchange")
    # The market begins.
    time.sleep(3)
    streams = server.base.replace("http", "ws", 1)
    key, secret = server.keys[0]
    own = {"api_key": key, "api_secret": secret, "base_url_http": server.base,
           "instrument_provider": InstrumentProviderConfig(load_all=True)}
    node = TradingNode(TradingNodeConfig(
        trader_id=TraderId("TESTER-001"), logging=LoggingConfig(log_level="WARN"),
        data_clients={BINANCE: BinanceDataClientConfig(base_url_ws=streams, **own)},
        exec_clients={BINANCE: BinanceExecClientConfig(
            base_url_ws=streams + "/ws-api/v3", **own)}))
    tester = ExecTester(ExecTesterConfig(
        instrument_id=InstrumentId.from_str("BTCUSDT.BINANCE"), order_qty=Decimal("0.001"),
        open_position_on_start_qty=Decimal("0.001"), tob_offset_ticks=50, log_data=False,
        cancel_replace_orders_to_maintain_tob_offset=True, reduce_only_on_stop=False))
    node.trader.add_strategy(tester)
    node.add_data_client_factory(BINANCE, BinanceLiveDataClientFactory)
    node.add_exec_client_factory(BINANCE, BinanceLiveExecClientFactory)
    node.build()
    threading.Timer(RUN_S, node.stop).start()
    node.run()
    # Those that came after the tester had stopped are in the cache, too.
    events = [event for order in node.cache.orders() for event in order.events]
    node.dispose()
    server.stop()
    kinds = {type(event).__name__ for event in events}
    assert {"OrderAccepted", "OrderFilled", "OrderCanceled"} <= kinds, kinds
    fills = [("buy" if fill.is_buy else "sell", round(float(fill.last_px) * 100),
              round(float(fill.last_qty) * LOT))
             for fill in events if type(fill).__name__ == "OrderFilled"]
    engine = [(side, price, size) for side, _, price, size in server.trades([USER])[USER]]
    assert sorted(fills) == sorted(engine) != [], (fills, engine)
    print(f"nautilus_trader's ExecTester: {len(engine)} fills as the engine has them, "
          f"{len(kinds)} kinds of events")


main()
