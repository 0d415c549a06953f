"""What would be left, if the plan were carried out until nothing more can go?"""
