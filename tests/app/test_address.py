"""The address of the app is printed when its port answers."""

import asyncio
from pathlib import Path

import pytest

from app.asgi import _tell_address


def test_the_address_is_printed_once_the_port_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def told() -> str:
        server = await asyncio.start_server(lambda _read, write: write.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setattr("streamlit.get_option", lambda _name: port)
        server.close()
        await server.wait_closed()
        telling = asyncio.create_task(_tell_address("127.0.0.1", Path("s.duckdb")))
        await asyncio.sleep(0.3)
        assert capsys.readouterr().err == ""
        server = await asyncio.start_server(
            lambda _read, write: write.close(), "127.0.0.1", port, reuse_address=True
        )
        await asyncio.wait_for(telling, 10)
        server.close()
        return f"asr-calibration: http://127.0.0.1:{port}  (store s.duckdb)\n"

    monkeypatch.delenv("ASR_PUBLIC_ORIGIN", raising=False)
    assert asyncio.run(told()) == capsys.readouterr().err
