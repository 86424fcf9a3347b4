"""Every public name explains itself: a docstring with an example that runs."""

import doctest
import inspect

import pytest

import associative_lstm
from associative_lstm import functional, nn


def public():
    for module in (associative_lstm, nn, functional):
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.ismodule(thing):
                yield pytest.param(thing, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("thing", list(public()))
def test_public_names_have_an_example(thing):
    assert doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")


@pytest.mark.parametrize("thing", list(public()))
def test_public_methods_have_a_docstring(thing):
    if inspect.isclass(thing):
        own = {name: value for name, value in vars(thing).items() if not name.startswith("_")}
        methods = {
            name for name, value in own.items() if inspect.isfunction(value) or isinstance(value, property)
        }
        assert {
            name for name in methods - {"forward", "extra_repr"} if not inspect.getdoc(own[name])
        } == set()
